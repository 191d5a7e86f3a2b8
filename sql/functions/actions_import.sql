-- Begins runs of a pipeline for many subjects at once; those that once_per remembers are left out. Their first actions
-- are set up as actions_make_runs() does it. traces: sampled traceparents, NULL or an empty array where there is none.
-- Returns how many began. Raises 22023 where a row names a message of another organisation than its own.
CREATE OR REPLACE FUNCTION actions_import(pipeline_name text, orgs text[], subjects text[],
                                          campaigns text[], messages text[], rows jsonb[], traces text[] DEFAULT '{}')
RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    p pipeline;
    s pipeline_step;
    n int8;
    crossing record;
BEGIN
    SELECT * INTO p FROM pipeline x WHERE x.name = pipeline_name AND x.active;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'P0002', MESSAGE = format('there is no pipeline %s', pipeline_name),
            HINT = COALESCE(
                'pipelines: ' || (SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM pipeline x WHERE x.active),
                'the database knows none until receiptd run has started with pipelines');
    END IF;
    SELECT u.org, u.message INTO crossing
    FROM unnest(orgs, messages COLLATE "default") AS u (org, message)
    WHERE u.message IS NOT NULL AND action_crosses(p.org_field, u.org, u.message)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('message %s is not of organisation %s', crossing.message, crossing.org);
    END IF;
    SELECT * INTO s FROM pipeline_step x WHERE x.pipeline_id = p.id AND x.step = p.first_step;
    WITH starts AS MATERIALIZED (
        SELECT w.org, w.subject, w.campaign, w.message, w.data, w.trace,
               w.message IS NOT NULL
                   AND (SELECT true FROM message_inbox m WHERE m.message_id = w.message LIMIT 1) IS NOT NULL AS had_row,
               CASE WHEN p.once_fields IS NOT NULL THEN
                   action_once_key((
                       SELECT jsonb_build_array(p.name)
                           || COALESCE(jsonb_agg(COALESCE(w.fields ->> f.name, '') ORDER BY f.n), '[]')
                       FROM unnest(p.once_fields) WITH ORDINALITY AS f (name, n))::text) END AS once
        FROM (SELECT u.org, u.subject, u.campaign, u.message, u.data, u.trace,
                     COALESCE(u.data, '{}') || jsonb_strip_nulls(jsonb_build_object(
                         'org_id', u.org, 'subject', u.subject, p.subject_field, u.subject,
                         'campaign_id', u.campaign, 'message_id', u.message)) AS fields
              FROM unnest(orgs, subjects, campaigns, messages COLLATE "default", rows, traces)
                   AS u (org, subject, campaign, message, data, trace)) w
    ),
    -- In the order of the keys: two transactions that begin the same runs never deadlock.
    once AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, campaign_id, message_id, had_row, data,
                              status, ended_at, once_key, trace)
        SELECT p.id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.campaign, w.message, w.had_row, w.data,
               CASE WHEN s.op = 'end' THEN 'done' ELSE 'active' END,
               CASE WHEN s.op = 'end' THEN clock_timestamp() END, w.once, w.trace
        FROM starts w
        WHERE w.once IS NOT NULL
        ORDER BY w.once
        ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
        RETURNING r.id, r.org_id, r.subject_hash, r.message_id
    ),
    always AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, campaign_id, message_id, had_row, data,
                              status, ended_at, trace)
        SELECT p.id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.campaign, w.message, w.had_row, w.data,
               CASE WHEN s.op = 'end' THEN 'done' ELSE 'active' END, CASE WHEN s.op = 'end' THEN clock_timestamp() END,
               w.trace
        FROM starts w
        WHERE w.once IS NULL
        RETURNING r.id, r.org_id, r.subject_hash, r.message_id
    ),
    began AS MATERIALIZED (
        SELECT * FROM once
        UNION ALL
        SELECT * FROM always
    ),
    first AS (
        INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash,
                            org_id, message_id, awaits, settle, perform_at)
        SELECT b.id, p.id, s.step, action_lane_of(b.subject_hash), b.subject_hash, b.org_id, b.message_id, s.awaits,
               CASE WHEN s.awaits IS NOT NULL AND NOT c.reached THEN '0'::xid8 END,
               clock_timestamp()
                   + (p.first_delay_ms + CASE WHEN c.reached THEN 0 ELSE s.within_ms END) * interval '1 millisecond'
        FROM began b
        CROSS JOIN LATERAL (SELECT s.awaits IS NOT NULL AND (
                                SELECT action_reached(action_path(m.status), m.flags, s.awaits)
                                FROM message_inbox m WHERE m.message_id = b.message_id LIMIT 1) IS TRUE AS reached) c
        WHERE s.op <> 'end'
    )
    SELECT count(*) INTO n FROM began;
    INSERT INTO pipeline_delta (name, started, repeated) VALUES (p.name, n, cardinality(subjects) - n);
    RETURN n;
END
$$;
