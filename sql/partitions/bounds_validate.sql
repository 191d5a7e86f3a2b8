-- Reads the whole table beside batches. Variables: other. Raises 23514 where a row does not fit.
ALTER TABLE :"other" VALIDATE CONSTRAINT receiptd_bounds;
