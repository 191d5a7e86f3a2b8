-- Parts of messages of which none has been delivered for long: $1 int8 ms, $2 int4 most rows. Returns rows (deleted).
WITH gone AS (
    DELETE FROM message_part t
    WHERE t.ctid = ANY (ARRAY(SELECT o.ctid FROM message_part o
                              WHERE o.noted_at < now() - $1::int8 * interval '1 millisecond'
                              LIMIT $2::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
