-- Another chance for dead actions: $1 int8 action (NULL: all), $2 text organisation, $3 text pipeline (NULL: all), $4
-- int8 most. They begin with attempt 1 and age 0 again. Returns rows.
WITH again AS (
    UPDATE action a
    SET status = 'pending', attempt = 0, wait_ms = 0, perform_at = clock_timestamp(), created_at = clock_timestamp(),
        ended_at = NULL
    WHERE a.id IN (SELECT b.id FROM action b JOIN pipeline p ON p.id = b.pipeline_id
                   WHERE b.status = 'dead' AND ($1::int8 IS NULL OR b.id = $1::int8)
                     AND ($2::text IS NULL OR b.org_id = $2::text) AND ($3::text IS NULL OR p.name = $3::text)
                   ORDER BY b.id LIMIT $4::int8)
      AND a.status = 'dead'
    RETURNING a.run_id
),
alive AS (
    UPDATE run r SET status = 'active', ended_at = NULL FROM again WHERE r.id = again.run_id AND r.status = 'dead'
)
SELECT count(*) AS rows FROM again;
