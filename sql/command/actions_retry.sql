-- Another chance for dead actions: $1 int8 action (NULL: all), $2 text organisation, $3 text pipeline (NULL: all), $4
-- int8 most. They begin with attempt 1 and age 0 again. Returns rows. A run of an organisation with a cap of open runs
-- waits for room first, whatever becomes of others beyond it.
WITH again AS (
    UPDATE action a
    SET status = CASE WHEN c.cap IS NULL THEN 'pending' ELSE 'held' END,
        held_by = CASE WHEN c.cap IS NOT NULL THEN 'cap:' || a.org_id END,
        attempt = 0, wait_ms = 0, perform_at = clock_timestamp(), created_at = clock_timestamp(), ended_at = NULL
    FROM (SELECT b.id, actions_cap(b.org_id) AS cap FROM action b JOIN pipeline p ON p.id = b.pipeline_id
          WHERE b.status = 'dead' AND ($1::int8 IS NULL OR b.id = $1::int8)
            AND ($2::text IS NULL OR b.org_id = $2::text) AND ($3::text IS NULL OR p.name = $3::text)
          ORDER BY b.id LIMIT $4::int8) c
    WHERE a.id = c.id AND a.status = 'dead'
    RETURNING a.run_id, a.org_id, a.status
),
locks AS (
    INSERT INTO org_open (org_id) SELECT DISTINCT g.org_id FROM again g WHERE g.status = 'held' ORDER BY 1
    ON CONFLICT DO NOTHING
),
alive AS (
    UPDATE run r SET status = CASE g.status WHEN 'held' THEN 'waiting' ELSE 'active' END, ended_at = NULL
    FROM again g WHERE r.id = g.run_id AND r.status = 'dead'
)
SELECT count(*) AS rows FROM again;
