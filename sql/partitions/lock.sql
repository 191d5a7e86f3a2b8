-- One run at a time makes, moves and drops partitions, until the session ends: whether this is the one.
SELECT pg_try_advisory_lock(hashtext('receiptd partitions'), hashtext(current_schema())) AS locked
