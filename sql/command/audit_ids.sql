-- The next slice of a walk over all ids in their order: finds those that stand in several rows. Parameters: $1 text
-- the last id of the slice before ('': there was none), $2 int8 most rows, apart from those of the last id. One row:
-- rows of the slice, last id (NULL: there are no more), ids that stand in several rows, twin_rows: how many rows
-- these have. Column first: the first 20 of these ids (NULL: none).
SELECT COALESCE(sum(g.n), 0)::int8 AS rows, max(g.id) AS last, count(*) FILTER (WHERE g.n > 1) AS ids,
       COALESCE(sum(g.n) FILTER (WHERE g.n > 1), 0)::int8 AS twin_rows,
       (array_agg(g.id) FILTER (WHERE g.n > 1))[1:20] AS first
FROM (SELECT s.id, count(*) AS n
      FROM (SELECT m.message_id AS id
            FROM message_inbox m
            WHERE m.message_id > $1::text
            ORDER BY m.message_id FETCH FIRST ($2::int8) ROWS WITH TIES) s
      GROUP BY s.id ORDER BY s.id) g
