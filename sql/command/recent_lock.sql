-- One run at a time, until the session ends: whether this is the one. No statement waits for it, since one that waits would hold a snapshot,
-- and CREATE INDEX CONCURRENTLY waits for snapshots.
SELECT pg_try_advisory_lock(hashtext('receiptd recent set'), hashtext(current_schema())) AS locked
