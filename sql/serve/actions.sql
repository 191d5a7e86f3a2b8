-- GET /actions: $1 text organisation (NULL: all), $2 text status (NULL: those that are not over, and dead ones), $3
-- text pipeline (NULL: all), $4 int8 id of the last one shown (NULL: none), $5 int4 most.
WITH page AS (
    SELECT a.id, a.run_id, a.org_id, a.message_id, a.status, a.attempt, a.perform_at,
           a.class, a.answer_status, p.name AS pipeline, s.stage, s.op, s.target
    FROM action a
    JOIN pipeline p ON p.id = a.pipeline_id
    JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
    WHERE (a.status = $2::text OR ($2::text IS NULL AND a.status IN ('pending', 'held', 'running', 'dead')))
      AND ($1::text IS NULL OR a.org_id = $1::text)
      AND ($3::text IS NULL OR p.name = $3::text)
      AND a.id > COALESCE($4::int8, 0)
    ORDER BY a.id
    LIMIT $5::int4
)
SELECT json_build_object('actions', COALESCE(json_agg(json_build_object(
    'id', a.id, 'run', a.run_id, 'pipeline', a.pipeline,
    'stage', a.stage, 'op', a.op, 'target', a.target, 'org_id', a.org_id,
    'message_id', a.message_id, 'status', a.status, 'attempt', a.attempt,
    'perform_at', to_char(a.perform_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'because', COALESCE((SELECT d.because FROM action_deferred d WHERE d.id = a.id), a.class),
    'answer_status', NULLIF(a.answer_status, 0)) ORDER BY a.id), '[]'),
    'next', CASE WHEN count(*) = $5::int4 THEN max(a.id)::text END)::text AS body
FROM page a;
