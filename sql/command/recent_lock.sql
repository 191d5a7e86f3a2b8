-- One run at a time on a table, also of several schemas that share it, until the session ends: whether this is the one. $1 text schema of
-- the inbox's table, $2 text its name. No statement waits for it, since one that waits would hold a snapshot, and CREATE INDEX CONCURRENTLY
-- waits for snapshots.
SELECT pg_try_advisory_lock(hashtext('receiptd recent set'), hashtext(format('%I.%I', $1::text, $2::text))) AS locked
