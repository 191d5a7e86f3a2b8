-- Forgets receipts of the default partition whose day is out of the window of $1 int8 ms; $2 int4 most rows. The other
-- partitions are dropped (functions/dedup_partitions). Returns rows.
WITH gone AS (
    DELETE FROM receipt_counted_other
    WHERE ctid = ANY (ARRAY(SELECT o.ctid FROM receipt_counted_other o
                            WHERE o.day < (now() AT TIME ZONE 'UTC')::date
                                          - ceil($1::int8 / 86400000.0)::int4
                            LIMIT $2::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
