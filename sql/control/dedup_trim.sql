-- Forgets receipts whose day is out of the window of $1 int8 ms; $2 int4 is not used. Returns rows: slots that were
-- emptied.
SELECT dedup_trim($1::int8) AS rows, $2::int4;
