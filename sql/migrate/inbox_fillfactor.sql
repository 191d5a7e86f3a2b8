-- For pages that are written from now on. Variables: fillfactor.
ALTER TABLE message_inbox SET (fillfactor = :fillfactor);
