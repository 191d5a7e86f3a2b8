-- One row: behind_s, by how many seconds at most the counters here trail what Kafka holds; NULL: not known, as some
-- partition has no instance that says. By what each instance said of its partitions, every 5 s: one that is late counts
-- as standing still, after 30 s it has nothing to say. On a standby the time of its replay comes on top.
CREATE OR REPLACE VIEW counters_behind AS
SELECT CASE WHEN sum(i.partitions) >= max(i.all_partitions) THEN round((max(i.behind_ms / 1000.0 + CASE
           WHEN NOT pg_is_in_recovery() THEN GREATEST(extract(epoch FROM now() - i.at) - 6, 0)
           WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
           ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END))::numeric, 1) END AS behind_s
FROM instance_status i
WHERE i.at > now() - interval '30 seconds' AND i.all_partitions > 0;
