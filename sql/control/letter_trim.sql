-- Dead letters that are older than their retention: $1 int8 ms (0: they stay), $2 int4 most rows. Returns rows
-- (deleted).
WITH gone AS (
    DELETE FROM dead_letter t
    WHERE t.ctid = ANY (ARRAY(SELECT o.ctid FROM dead_letter o
                              WHERE o.dead_at < now() - NULLIF($1::int8, 0) * interval '1 millisecond'
                              LIMIT $2::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
