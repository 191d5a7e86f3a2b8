-- Lists actions with the reason why they do not run now. Parameters: $1 text status (NULL: those that are not over,
-- and dead ones), $2 text organisation, $3 text pipeline (NULL: all), $4 int8 action, $5 int8 run (NULL: all), $6
-- int8 most rows.
SELECT a.id, a.run_id, p.name AS pipeline, s.stage, s.op, s.target, a.org_id, r.subject, a.status, a.attempt,
       to_char(a.perform_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS perform_at,
       CASE WHEN a.status IN ('pending', 'held', 'running')
            THEN (SELECT d.because FROM action_deferred d WHERE d.id = a.id)
            WHEN a.class = 'message_gone' THEN 'its message was deleted'
            WHEN a.class = 'forbidden' THEN 'forbidden: its address is not public, and actions.allow_private is not set'
            ELSE a.class END AS because,
       NULLIF(a.answer_status, 0) AS answer_status, a.answer
FROM action a
JOIN run r ON r.id = a.run_id
JOIN pipeline p ON p.id = a.pipeline_id
JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
WHERE ($1::text IS NULL
       AND ($4::int8 IS NOT NULL OR $5::int8 IS NOT NULL OR a.status IN ('pending', 'held', 'running', 'dead'))
       OR a.status = $1::text)
  AND ($2::text IS NULL OR a.org_id = $2::text) AND ($3::text IS NULL OR p.name = $3::text)
  AND ($4::int8 IS NULL OR a.id = $4::int8) AND ($5::int8 IS NULL OR a.run_id = $5::int8)
ORDER BY a.perform_at, a.id
LIMIT $6::int8;
