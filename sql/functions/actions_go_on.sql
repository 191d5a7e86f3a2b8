-- Moves runs to a step after a delay: inserts an action for it, or ends the run. Runs that are over stay as they are.
-- runs, pipelines, steps, delays (ms): one entry each. (In plpgsql, since the inbox does not exist yet when this is
-- created.)
CREATE OR REPLACE FUNCTION actions_go_on(runs int8[], pipelines int4[], steps int4[], delays int8[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE run r SET status = 'done', ended_at = clock_timestamp()
    WHERE r.status = 'active' AND r.id = ANY (ARRAY( -- by key, under all estimates of the planner
        SELECT w.run FROM unnest(runs, pipelines, steps) AS w (run, pipeline, step)
        JOIN pipeline_step s ON s.pipeline_id = w.pipeline AND s.step = w.step
        WHERE s.op = 'end'));
    INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, awaits, settle, perform_at,
                        created_at)
    SELECT r.id, s.pipeline_id, s.step, action_lane_of(r.subject_hash),
           r.subject_hash, r.org_id, r.message_id, s.awaits,
           CASE WHEN s.awaits IS NOT NULL AND NOT c.reached THEN '0'::xid8 END, d.at, d.at
    FROM unnest(runs, pipelines, steps, delays) AS w (run, pipeline, step, delay)
    JOIN pipeline_step s ON s.pipeline_id = w.pipeline AND s.step = w.step
    CROSS JOIN LATERAL (SELECT q.* FROM run q WHERE q.id = w.run AND q.status = 'active' OFFSET 0) r
    LEFT JOIN LATERAL (SELECT i.status, i.flags FROM message_inbox i
                       WHERE s.awaits IS NOT NULL AND i.message_id = r.message_id LIMIT 1) m ON true
    CROSS JOIN LATERAL (SELECT s.awaits IS NOT NULL
                               AND action_reached(action_path(m.status), m.flags, s.awaits) AS reached) c
    CROSS JOIN LATERAL (SELECT clock_timestamp() + (w.delay + CASE WHEN c.reached THEN 0 ELSE s.within_ms END)
                                                   * interval '1 millisecond' AS at) d
    WHERE s.op <> 'end';
END
$$;
