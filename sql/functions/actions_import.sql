-- Begins runs of a pipeline for many subjects at once; those that once_per remembers are left out. Their first actions
-- are set up as actions_make_runs() does it. stage: where they enter; NULL: at the first one. whole, fates, over: as in
-- actions_fates(). traces: sampled traceparents, NULL or an empty array where there is none. began: how many began or
-- wait. waiting, refused, dropped: how many are beyond a cap. Raises 22023 where there is no such stage, or a row names
-- a message of another organisation than its own.
CREATE OR REPLACE FUNCTION actions_import(pipeline_name text, orgs text[], subjects text[], campaigns text[],
                                          messages text[], rows jsonb[], stage text, whole boolean, traces text[],
                                          OUT began int8,
                                          OUT waiting int8, OUT refused int8, OUT dropped int8, OUT fates "char"[],
                                          OUT over text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    p pipeline;
    s pipeline_step;
    crossing record;
    capped boolean := actions_are_capped();
    fault text;
BEGIN
    SELECT * INTO p FROM pipeline x WHERE x.name = pipeline_name AND x.active;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'P0002', MESSAGE = format('there is no pipeline %s', pipeline_name),
            HINT = COALESCE(
                'pipelines: ' || (SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM pipeline x WHERE x.active),
                'the database knows none until receiptd run has started with pipelines');
    END IF;
    fault := action_stage_fault(p.name, p.stages, stage);
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = fault;
    ELSIF stage IS NOT NULL THEN
        p.first_step := p.stages -> stage -> 0;
        p.first_delay_ms := p.stages -> stage -> 1;
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
        SELECT w.n, w.org, w.subject, w.campaign, w.message, w.data, w.trace,
               w.message IS NOT NULL
                   AND (SELECT true FROM message_inbox m WHERE m.message_id = w.message LIMIT 1) IS NOT NULL AS had_row,
               CASE WHEN p.once_fields IS NOT NULL THEN
                   action_once_key(p.name, p.push, (
                       SELECT jsonb_agg(COALESCE(w.fields ->> f.name, '') ORDER BY f.n)
                       FROM unnest(p.once_fields) WITH ORDINALITY AS f (name, n))) END AS once
        FROM (SELECT u.n, u.org, u.subject, u.campaign, u.message, u.data, u.trace,
                     COALESCE(u.data, '{}') || jsonb_strip_nulls(jsonb_build_object(
                         'org_id', u.org, 'subject', u.subject, p.subject_field, u.subject,
                         'campaign_id', u.campaign, 'message_id', u.message)) AS fields
              FROM unnest(orgs, subjects, campaigns, messages COLLATE "default", rows, traces)
                   WITH ORDINALITY AS u (org, subject, campaign, message, data, trace, n)) w
    ),
    fates AS MATERIALIZED (
        SELECT c.fates, c.over
        FROM (SELECT array_agg(w.org ORDER BY w.n) AS orgs, array_agg(w.once ORDER BY w.n) AS keys
              FROM starts w HAVING capped) k
        CROSS JOIN LATERAL actions_fates(k.orgs, k.keys, whole) c
    ),
    placed AS MATERIALIZED (SELECT w.*, COALESCE((SELECT c.fates FROM fates c)[w.n], 'b') AS fate FROM starts w),
    -- In the order of the keys: two transactions that begin the same runs never deadlock.
    once AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, campaign_id, message_id, had_row, data,
                              status, ended_at, once_key, trace)
        SELECT p.id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.campaign, w.message, w.had_row, w.data,
               CASE WHEN s.op = 'end' THEN 'done' WHEN w.fate = 'w' THEN 'waiting' ELSE 'active' END,
               CASE WHEN s.op = 'end' THEN clock_timestamp() END, w.once, w.trace
        FROM placed w
        WHERE w.once IS NOT NULL AND w.fate IN ('b', 'w')
        ORDER BY w.once
        ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
        RETURNING r.id, r.org_id, r.subject_hash, r.message_id, r.status
    ),
    always AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, campaign_id, message_id, had_row, data,
                              status, ended_at, trace)
        SELECT p.id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.campaign, w.message, w.had_row, w.data,
               CASE WHEN s.op = 'end' THEN 'done' WHEN w.fate = 'w' THEN 'waiting' ELSE 'active' END,
               CASE WHEN s.op = 'end' THEN clock_timestamp() END, w.trace
        FROM placed w
        WHERE w.once IS NULL AND w.fate IN ('b', 'w')
        RETURNING r.id, r.org_id, r.subject_hash, r.message_id, r.status
    ),
    began AS MATERIALIZED (
        SELECT * FROM once
        UNION ALL
        SELECT * FROM always
    ),
    first AS (
        INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash,
                            org_id, message_id, awaits, settle, perform_at, created_at, status, held_by,
                            wait_ms)
        SELECT b.id, p.id, s.step, action_lane_of(b.subject_hash), b.subject_hash, b.org_id, b.message_id, s.awaits,
               CASE WHEN s.awaits IS NOT NULL AND NOT c.reached AND h.by IS NULL THEN '0'::xid8 END,
               d.at, d.at, CASE WHEN h.by IS NULL THEN 'pending' ELSE 'held' END, h.by,
               CASE WHEN h.by IS NULL THEN 0 ELSE d.delay_ms END
        FROM began b
        CROSS JOIN LATERAL (SELECT CASE WHEN b.status = 'waiting' THEN 'cap:' || b.org_id END AS by) h
        CROSS JOIN LATERAL (SELECT s.awaits IS NOT NULL AND (
                                SELECT action_reached(action_path(m.status), m.flags, s.awaits)
                                FROM message_inbox m WHERE m.message_id = b.message_id LIMIT 1) IS TRUE AS reached) c
        CROSS JOIN LATERAL (SELECT p.first_delay_ms + CASE WHEN c.reached THEN 0 ELSE s.within_ms END AS delay_ms) w
        CROSS JOIN LATERAL (SELECT w.delay_ms, clock_timestamp() + CASE WHEN h.by IS NULL THEN w.delay_ms ELSE 0 END
                                                     * interval '1 millisecond' AS at) d
        WHERE s.op <> 'end'
    )
    SELECT (SELECT count(*) FROM began), (SELECT count(*) FROM began b WHERE b.status = 'waiting'),
           count(*) FILTER (WHERE w.fate = 'r'), count(*) FILTER (WHERE w.fate = 'd'),
           (SELECT c.fates FROM fates c), (SELECT c.over FROM fates c)
    INTO began, waiting, refused, dropped, fates, over
    FROM placed w;
    INSERT INTO pipeline_delta (name, started, repeated, refused, dropped, deferred)
    VALUES (p.name, began, cardinality(subjects) - began - refused - dropped, refused, dropped, waiting);
END
$$;
