-- Forgets closed groups whose last publication is older than $2 int8 ms, at most $3 int4 of shard $1 int4, after
-- fence.sql. Returns rows. Numbers of new groups begin above theirs, so that an id is never used twice.
WITH
gone AS (
    DELETE FROM fold_group g
    WHERE (g.rule, g.key) IN (SELECT f.rule, f.key FROM fold_group f
                              WHERE f.lane = $1::int4 AND f.due_at IS NULL
                                AND f.published_at < now() - $2::int8 * interval '1 millisecond'
                              ORDER BY f.published_at LIMIT $3::int4)
      AND g.due_at IS NULL
    RETURNING g.number
),
floor AS (
    UPDATE fold_lane l SET number_floor = GREATEST(l.number_floor, n.number)
    FROM (SELECT max(g.number) AS number FROM gone g) n
    WHERE l.lane = $1::int4 AND n.number IS NOT NULL
)
SELECT count(*) AS rows FROM gone;
