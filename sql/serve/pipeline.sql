-- GET /pipelines/{pipeline}: $1 text organisation (NULL: all), $2 text name. It shows how many actions stand in each
-- stage, by status. Actions that are over count until they are tidied away. No row: no such pipeline, or one that
-- never acted for the organisation.
WITH counted AS MATERIALIZED (
    SELECT s.stage, s.op, min(s.step) AS step, a.status, count(*) AS actions
    FROM pipeline p
    JOIN action a ON a.pipeline_id = p.id
    JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
    WHERE p.name = $2::text AND ($1::text IS NULL OR a.org_id = $1::text)
    GROUP BY s.stage, s.op, a.status
)
SELECT json_build_object(
    'name', $2::text,
    'started', CASE WHEN $1::text IS NULL THEN (SELECT c.started FROM pipeline_count c WHERE c.name = $2::text) END,
    'stages', (SELECT COALESCE(json_agg(json_build_object('stage', g.stage, 'op', g.op, 'actions', g.actions)
                                        ORDER BY g.step), '[]')
               FROM (SELECT c.stage, c.op, min(c.step) AS step,
                            json_object_agg(c.status, c.actions ORDER BY c.status) AS actions
                     FROM counted c GROUP BY c.stage, c.op) g))::text AS body
WHERE EXISTS (SELECT FROM counted) OR ($1::text IS NULL AND EXISTS (SELECT FROM pipeline p WHERE p.name = $2::text));
