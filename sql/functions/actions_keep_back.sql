-- Part of actions_capped(): ids wait until opens, or are passed over, at the time of the round. A wait does not age an
-- action, so that it has all its attempts afterwards. Returns how many; pipelines count them.
CREATE OR REPLACE FUNCTION actions_keep_back(ids int8[], opens timestamptz[], now_at timestamptz, pass boolean)
RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
BEGIN
    WITH done AS (
        UPDATE action a
        SET status = CASE WHEN pass THEN 'done' ELSE 'pending' END, class = 'capped', lease_until = NULL,
            ended_at = CASE WHEN pass THEN now_at END,
            held_by = CASE WHEN NOT pass THEN 'cap' END,
            perform_at = CASE WHEN pass THEN a.perform_at ELSE w.opens END,
            created_at = CASE WHEN pass THEN a.created_at ELSE a.created_at + (w.opens - now_at) END
        FROM unnest(ids, opens) AS w (id, opens)
        WHERE a.id = w.id AND a.id = ANY (ids) AND a.status = 'pending'
        RETURNING a.run_id, a.pipeline_id, a.step
    )
    SELECT array_agg(d.run_id), array_agg(d.pipeline_id), array_agg(s.else_step), array_agg(s.else_delay_ms)
    INTO runs, pipelines, steps, delays
    FROM done d JOIN pipeline_step s ON s.pipeline_id = d.pipeline_id AND s.step = d.step;
    INSERT INTO pipeline_delta (name, started, repeated, capped)
    SELECT p.name, 0, 0, count(*) FROM unnest(pipelines) AS w (id) JOIN pipeline p ON p.id = w.id GROUP BY p.name;
    IF pass AND runs IS NOT NULL THEN
        PERFORM actions_go_on(runs, pipelines, steps, delays);
    END IF;
    RETURN COALESCE(cardinality(runs), 0);
END
$$;
