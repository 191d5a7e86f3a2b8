-- Ids of deleted messages that have been remembered long enough: $1 int8 ms, $2 int4 most rows. Returns rows (deleted).
WITH gone AS (
    DELETE FROM retired_message t
    WHERE t.ctid = ANY (ARRAY(SELECT o.ctid FROM retired_message o
                              WHERE o.retired_at < now() - $1::int8 * interval '1 millisecond'
                              LIMIT $2::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
