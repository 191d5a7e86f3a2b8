-- Variables: other.
ALTER TABLE :"other" DROP CONSTRAINT IF EXISTS receiptd_bounds;
