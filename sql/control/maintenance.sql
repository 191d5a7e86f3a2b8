-- The figures of `receiptd maintain`, for the metrics. It reads catalogs, statistics and one row, but no message.
-- search_path = the schema. Column walked_ms: when it last ended a walk of all tables (NULL: never). Column other:
-- rows of the default partition of our own inbox (NULL: there is none). Where statistics were lost, it is as of the
-- last ANALYZE. Column unbooked: partitions that the platform has taken away and that are not booked. upper: the
-- bound at which the last partition ends (NULL: none). drifting: campaigns whose counters differed from their messages
-- when they were last recounted (NULL: none was ever recounted); proven_ms: the oldest of the last recounts.
SELECT (SELECT (extract(epoch FROM m.ended_at) * 1000)::int8 FROM maintained m WHERE m.task = 'walk') AS walked_ms,
       (SELECT CASE WHEN pg_stat_get_tuples_inserted(c.oid) = 0 AND pg_stat_get_live_tuples(c.oid) = 0
                    THEN GREATEST(c.reltuples, 0)::int8
                    ELSE pg_stat_get_live_tuples(c.oid) END
        FROM pg_partitioned_table p
        JOIN pg_class c ON c.oid = p.partdefid
        WHERE p.partrelid = to_regclass('message_inbox')) AS other,
       (SELECT count(*) FROM inbox_partition_state s WHERE s.state IN ('detached', 'dropped')) AS unbooked,
       (SELECT max(substring(pg_get_expr(c.relpartbound, c.oid) FROM ' TO \(''([^'']*)''\)$') COLLATE "C")
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass('message_inbox')) AS upper,
       (SELECT (extract(epoch FROM min(p.proven_at)) * 1000)::int8 FROM campaign_proof p) AS proven_ms,
       (SELECT count(*) FROM campaign_proof p WHERE p.drift > 0) AS drifting;
