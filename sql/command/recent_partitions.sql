-- The recent set of a table that is partitioned by ranges of created_at: its newest partitions. $1 text schema, $2 text name of the table, $3 text
-- messages that the set shall have, $4 text since, of the set that there is (NULL: none). One row. boundary: the lower bound of the newest
-- partitions that have so many messages, or an eighth of all where that is fewer, since the number of partitions costs, however small they
-- are (NULL: there are none before these). moved: whether it is another one. newest, before: partitions with messages on either side of the boundary. rows:
-- all messages. A partition is as dense as at its last ANALYZE. Partitions that are made ahead are empty and count nothing; nor does the default one.
WITH part AS (
    SELECT COALESCE(substring(pg_get_expr(c.relpartbound, c.oid) FROM '^FOR VALUES FROM \(''([^'']*)''')::timestamptz, '-infinity') AS lower, e.rows
    FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
    CROSS JOIN LATERAL (
        SELECT sum(pg_relation_size(l.oid) / current_setting('block_size')::float8
                   * CASE WHEN l.reltuples > 0 AND l.relpages > 0 THEN l.reltuples / l.relpages ELSE 40 END) AS rows
        FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf) e
    WHERE h.inhparent = to_regclass(format('%I.%I', $1::text, $2::text)) AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT' AND e.rows > 0
),
summed AS (
    SELECT p.lower, sum(p.rows) OVER (ORDER BY p.lower DESC) AS newer, sum(p.rows) OVER () AS rows FROM part p
),
chosen AS (
    SELECT NULLIF(max(s.lower) FILTER (WHERE s.newer >= LEAST($3::float8, s.rows / 8)), min(s.lower)) AS boundary, max(s.rows) AS rows FROM summed s
)
SELECT c.boundary, c.boundary IS DISTINCT FROM $4::timestamptz AS moved, COALESCE(c.rows, 0)::int8 AS rows,
       (SELECT count(*) FROM part p WHERE p.lower >= c.boundary) AS newest, (SELECT count(*) FROM part p WHERE p.lower < c.boundary) AS before
FROM chosen c
