-- What `receiptd maintain` looks after, for the metrics. Catalogs, statistics and one row: no message is read.
-- search_path = the schema. walked_ms (NULL: never): when it last ended a walk of all tables. retired: rows that
-- statistics have seen in retired_message, which has one for each message that went. recent (NULL: no recent set, or
-- one of partitions): rows of its index, as of its last vacuum or ANALYZE. other (NULL: there is none): rows of the
-- default partition of our own inbox; where statistics were lost, as of its last ANALYZE. unbooked: partitions that
-- somebody else has taken away and that are not booked. upper (NULL: none): the bound at which the last partition ends.
SELECT (SELECT (extract(epoch FROM m.ended_at) * 1000)::int8 FROM maintained m WHERE m.task = 'walk') AS walked_ms,
       pg_stat_get_tuples_inserted('retired_message'::regclass) AS retired,
       (SELECT GREATEST(c.reltuples, 0)::int8
        FROM inbox_recent r JOIN pg_namespace n ON n.nspname = r.index_schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = r.index_name
        JOIN pg_index x ON x.indexrelid = c.oid AND x.indisvalid) AS recent,
       (SELECT CASE WHEN pg_stat_get_tuples_inserted(c.oid) = 0 AND pg_stat_get_live_tuples(c.oid) = 0 THEN GREATEST(c.reltuples, 0)::int8
                    ELSE pg_stat_get_live_tuples(c.oid) END
        FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partdefid WHERE p.partrelid = to_regclass('message_inbox')) AS other,
       (SELECT count(*) FROM inbox_partition_state s WHERE s.state IN ('detached', 'dropped')) AS unbooked,
       (SELECT max(substring(pg_get_expr(c.relpartbound, c.oid) FROM ' TO \(''([^'']*)''\)$') COLLATE "C")
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass('message_inbox')) AS upper;
