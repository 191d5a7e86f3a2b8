-- The recent set of a table that is partitioned by ranges of created_at or of the message's id: its newest
-- partitions. Variables: inbox_schema, inbox_table; column, of message_inbox, by which it is partitioned, and type,
-- of pg_catalog, of that. Further: most, the messages that the set shall have; since, of the present set (NULL:
-- none). One row. boundary: the lower bound of the newest partitions that have `most` messages (NULL: there are none
-- before these). An eighth of all messages is enough where that is fewer: the number of partitions costs, however
-- small they are. Column moved: whether the boundary is another one. newest, before: partitions with messages on
-- either side of the boundary. rows: all messages.
--
-- A partition is taken to be as dense as at its last ANALYZE. Partitions that are made ahead are empty and do not
-- count, nor does the default one. Bounds are compared in the type and collation of the column, which is that of the
-- partitions: message_inbox is named for that alone.
WITH bound AS (
    SELECT pg_get_expr(c.relpartbound, c.oid) AS text, e.rows
    FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
    CROSS JOIN LATERAL (
        SELECT sum(pg_relation_size(l.oid) / current_setting('block_size')::float8
                   * CASE WHEN l.reltuples > 0 AND l.relpages > 0 THEN l.reltuples / l.relpages ELSE 40 END) AS rows
        FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf) e
    -- by the catalogs: a role that reads the view alone has no right on the table's schema
    WHERE h.inhparent = (SELECT b.oid FROM pg_class b JOIN pg_namespace s ON s.oid = b.relnamespace
                         WHERE s.nspname = :'inbox_schema' AND b.relname = :'inbox_table')
),
lower AS (
    SELECT COALESCE(replace(substring(b.text FROM '^FOR VALUES FROM \(''((?:[^'']|'''')*)'''), '''''', ''''),
                    NULLIF(substring(b.text FROM '^FOR VALUES FROM \(([^'',)]+)[,)]'), 'MINVALUE')) AS text, b.rows
    FROM bound b WHERE b.text <> 'DEFAULT' AND b.rows > 0
),
part AS (
    SELECT CASE WHEN l.text IS NULL THEN (SELECT m.:"column" FROM message_inbox m LIMIT 0)
                ELSE l.text::pg_catalog.:"type" END AS lower, l.rows
    FROM lower l
),
ranked AS (
    SELECT p.lower, sum(p.rows) OVER w AS newer, row_number() OVER w AS n,
           sum(p.rows) OVER () AS rows, count(*) OVER () AS partitions
    FROM part p WINDOW w AS (ORDER BY p.lower DESC NULLS LAST)
),
chosen AS (
    SELECT CASE WHEN r.n < r.partitions THEN r.lower END AS boundary, r.rows, r.n, r.partitions
    FROM ranked r WHERE r.newer >= LEAST(:'most'::float8, r.rows / 8) ORDER BY r.n LIMIT 1
)
SELECT c.boundary::text AS boundary, c.boundary IS DISTINCT FROM :'since'::pg_catalog.:"type" AS moved,
       COALESCE(c.rows, 0)::int8 AS rows, c.n AS newest, c.partitions - c.n AS before
FROM (SELECT) one LEFT JOIN chosen c ON true
