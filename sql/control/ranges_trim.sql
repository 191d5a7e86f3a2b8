-- Ranges that no lane has resolved for long, since their partition has gone: $1 int8 ms, $2 int4 most rows. Returns
-- rows (deleted).
WITH gone AS (
    DELETE FROM range_receipt t
    WHERE t.ctid = ANY (ARRAY(SELECT o.ctid FROM range_receipt o
                              WHERE o.stored_at < now() - $1::int8 * interval '1 millisecond'
                              LIMIT $2::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
