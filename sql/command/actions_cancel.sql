-- Ends runs where they stand; the result of a call in flight changes nothing. $1 int8 action (NULL: all), $2 text
-- organisation, $3 text pipeline (NULL: all), $4 int8 most. Returns rows (runs).
WITH ended AS (
    UPDATE action a SET status = 'cancelled', ended_at = clock_timestamp(), settle = NULL
    WHERE a.id IN (SELECT b.id FROM action b JOIN pipeline p ON p.id = b.pipeline_id
                   WHERE b.status IN ('pending', 'held', 'running', 'dead') AND ($1::int8 IS NULL OR b.id = $1::int8)
                     AND ($2::text IS NULL OR b.org_id = $2::text) AND ($3::text IS NULL OR p.name = $3::text)
                   LIMIT $4::int8)
      AND a.status IN ('pending', 'held', 'running', 'dead')
    RETURNING a.run_id
),
-- A run that is not over has one action that is not.
over AS (
    UPDATE run r SET status = 'cancelled', ended_at = clock_timestamp()
    FROM ended WHERE r.id = ended.run_id AND r.status IN ('active', 'dead', 'waiting')
    RETURNING r.id
)
SELECT count(*) AS rows FROM over;
