-- Replaces the pipelines. Wordings that are known keep their rows. Wordings that are not in the list start no new
-- runs; their runs go on.
CREATE OR REPLACE FUNCTION pipelines_store(definitions jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    made int4;
BEGIN
    LOCK TABLE pipeline_trigger IN SHARE ROW EXCLUSIVE MODE;
    FOR one IN SELECT * FROM jsonb_array_elements(definitions) LOOP
        INSERT INTO pipeline (name, hash, active, org_field, subject_field, once_fields, first_step, first_delay_ms,
                              push, stages, lookup_sql, lookup_as)
        SELECT one ->> 'name', one ->> 'hash', true, one ->> 'org', one ->> 'subject',
               CASE WHEN jsonb_typeof(one -> 'once_per') = 'array'
                    THEN ARRAY(SELECT jsonb_array_elements_text(one -> 'once_per')) END,
               (one ->> 'first_step')::int4, (one ->> 'first_delay_ms')::int8, one ->> 'push', one -> 'stages',
               one -> 'lookup' ->> 'sql', one -> 'lookup' ->> 'as'
        ON CONFLICT DO NOTHING
        RETURNING id INTO made;
        IF made IS NOT NULL THEN
            INSERT INTO pipeline_step
            SELECT made, s.step, s.stage, s.op, s.target, s.key, s."if", s."unless", s.awaits, s.within_ms, s.next_step,
                   s.next_delay_ms, s.else_step, s.else_delay_ms, s.exits, COALESCE(s.capped, true),
                   s.from_second, s.till_second, s.days, s.smooth_ms, s.hour_field
            FROM jsonb_to_recordset(one -> 'steps')
                 AS s (step int4, stage text, op text, target text, key text, "if" int2[], "unless" int2[], awaits int2,
                       within_ms int8, next_step int4, next_delay_ms int8, else_step int4, else_delay_ms int8,
                       exits jsonb, capped boolean, from_second int4, till_second int4, days int4[], smooth_ms int8,
                       hour_field text);
            INSERT INTO pipeline_trigger (pipeline_id, code, wakes)
            SELECT DISTINCT made, s.awaits, true
            FROM pipeline_step s
            WHERE s.pipeline_id = made AND s.awaits IS NOT NULL;
        END IF;
    END LOOP;
    UPDATE pipeline p SET active = w.one IS NOT NULL
    FROM pipeline q LEFT JOIN jsonb_array_elements(definitions) AS w (one)
                           ON w.one ->> 'name' = q.name AND w.one ->> 'hash' = q.hash
    WHERE p.id = q.id AND p.active <> (w.one IS NOT NULL);
    -- A push that has begun keeps its rule: nobody changes the horizon once there are figures.
    INSERT INTO push AS p (name, rule)
    SELECT DISTINCT ON (s.target) s.target, s.rule
    FROM jsonb_array_elements(definitions) AS w (one)
    CROSS JOIN LATERAL jsonb_to_recordset(w.one -> 'steps') AS s (op text, target text, rule jsonb)
    WHERE s.op = 'split'
    ORDER BY s.target
    ON CONFLICT (name) DO UPDATE SET rule = EXCLUDED.rule
        WHERE p.started_at IS NULL AND p.decided_at IS NULL AND p.rule <> EXCLUDED.rule;
    DELETE FROM pipeline_trigger WHERE NOT wakes;
    INSERT INTO pipeline_trigger (pipeline_id, code, wakes, orgs, campaigns)
    SELECT p.id, (w.one ->> 'on')::int2, false,
           CASE WHEN jsonb_typeof(w.one -> 'orgs') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'orgs')) END,
           CASE WHEN jsonb_typeof(w.one -> 'campaigns') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'campaigns')) END
    FROM jsonb_array_elements(definitions) AS w (one)
    JOIN pipeline p ON p.name = w.one ->> 'name' AND p.hash = w.one ->> 'hash'
    WHERE w.one ->> 'on' IS NOT NULL;
    DELETE FROM pipeline_source;
    INSERT INTO pipeline_source (pipeline_id, topic, orgs, campaigns)
    SELECT p.id, w.one ->> 'topic',
           CASE WHEN jsonb_typeof(w.one -> 'orgs') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'orgs')) END,
           CASE WHEN jsonb_typeof(w.one -> 'campaigns') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'campaigns')) END
    FROM jsonb_array_elements(definitions) AS w (one)
    JOIN pipeline p ON p.name = w.one ->> 'name' AND p.hash = w.one ->> 'hash'
    WHERE w.one ->> 'topic' IS NOT NULL;
END
$$;
