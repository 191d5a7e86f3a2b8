-- For audit_ids.sql: the partitions' indexes give the ids in their order, and are merged. So nothing is sorted or
-- hashed, whatever the size of the inbox.
SET enable_seqscan = off;
SET enable_hashagg = off;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
