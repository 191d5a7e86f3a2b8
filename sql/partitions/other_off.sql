-- Takes the default partition off, so that no trigger books or counts what is moved out of it. Variables: other.
ALTER TABLE message_inbox DETACH PARTITION :"other";
