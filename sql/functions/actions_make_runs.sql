-- Part of actions_begin(): makes the runs of these rows of run_intent, and the first action of each.
--
-- places: the rows, locked. runs: how many runs they ask for, without those of messages for which the pipeline has
-- begun one (once_per may have had the others already, and a cap may hold back some). oldest_ms: age of the oldest row.
--
-- A run begins at the time of its transition, not when its row is made. Fields of the inbox are read here. The status
-- that the first step awaits may have come already: the step is set up like any other await.
CREATE OR REPLACE FUNCTION actions_make_runs(places tid[], OUT runs int8, OUT oldest_ms int8) LANGUAGE plpgsql AS $$
DECLARE
    capped boolean := actions_are_capped();
BEGIN
    WITH i AS MATERIALIZED (
        DELETE FROM run_intent i WHERE i.ctid = ANY (places)
        RETURNING i.begun_at, i.org_id, i.pipeline_id, i.messages, i.orgs, i.campaigns,
                  i.traces
    ),
    -- The pipelines, looked up once for a batch and not for each run of it.
    p AS MATERIALIZED (
        SELECT p.id, p.name, p.push, p.org_field, p.subject_field, p.once_fields,
               p.first_delay_ms, s.step, s.awaits, s.within_ms,
               NOT ARRAY[p.org_field, p.subject_field] || COALESCE(p.once_fields, '{}')
                   <@ ARRAY['message_id', 'org_id', 'campaign_id', 'subject'] AS reads_row
        FROM (SELECT DISTINCT i.pipeline_id FROM i) d
        JOIN pipeline p ON p.id = d.pipeline_id
        JOIN pipeline_step s ON s.pipeline_id = p.id AND s.step = p.first_step
    ),
    -- `on` fires once for each message, also for one that left the status and comes back.
    fired AS MATERIALIZED (
        SELECT DISTINCT ON (k.first, k.second) i.pipeline_id, i.begun_at, w.message, COALESCE(w.org, i.org_id) AS org,
               w.campaign, w.trace, k.first, k.second
        FROM i JOIN p ON p.id = i.pipeline_id
        CROSS JOIN LATERAL unnest(i.messages, i.orgs, i.campaigns, i.traces) AS w (message, org, campaign, trace)
        CROSS JOIN LATERAL actions_begun_key(p.name, COALESCE(w.org, i.org_id), w.message) k
        ORDER BY k.first, k.second, i.begun_at
    ),
    -- In the order of the keys: two transactions that begin the same runs never deadlock.
    fresh AS (
        INSERT INTO run_begun AS b (first, second)
        SELECT h.first, h.second FROM fired h ORDER BY h.first, h.second
        ON CONFLICT DO NOTHING
        RETURNING b.first, b.second
    ),
    f AS (
        SELECT p.id AS pipeline_id, p.name, p.push, p.org_field, p.subject_field, p.once_fields, h.begun_at,
               h.message, h.org, h.campaign, h.trace,
               CASE WHEN p.reads_row
                    THEN (SELECT to_jsonb(m.*) FROM message_inbox m WHERE m.message_id = h.message LIMIT 1) END AS row
        FROM fired h JOIN p ON p.id = h.pipeline_id
        -- A hashed subplan: a join would be planned as a loop over both, since a plan takes every array for ten
        -- elements.
        WHERE COALESCE((h.first, h.second) IN (SELECT x.first, x.second FROM fresh x), false)
    ),
    g AS (
        SELECT f.*, COALESCE(action_field(f.org_field, f.org, f.campaign, f.message, f.row), '') AS run_org,
               COALESCE(NULLIF(action_field(f.subject_field, f.org, f.campaign, f.message, f.row), ''),
                        f.message) AS subject
        FROM f
    ),
    starts AS MATERIALIZED (
        SELECT g.pipeline_id, g.begun_at, g.message, g.campaign, g.run_org AS org, g.subject, g.trace,
               row_number() OVER (ORDER BY g.begun_at) AS n,
               CASE WHEN g.once_fields IS NOT NULL THEN
                   action_once_key(g.name, g.push, (
                       SELECT jsonb_agg(COALESCE(
                           CASE o.name WHEN 'subject' THEN g.subject
                                       ELSE action_field(o.name, g.org, g.campaign, g.message, g.row) END, '')
                           ORDER BY o.n)
                       FROM unnest(g.once_fields) WITH ORDINALITY AS o (name, n))) END AS once
        FROM g
    ),
    fates AS MATERIALIZED (
        SELECT c.fates
        FROM (SELECT array_agg(w.org ORDER BY w.n) AS orgs, array_agg(w.once ORDER BY w.n) AS keys
              FROM starts w HAVING capped) k
        CROSS JOIN LATERAL actions_fates(k.orgs, k.keys, false) c
    ),
    placed AS MATERIALIZED (SELECT w.*, COALESCE((SELECT c.fates FROM fates c)[w.n], 'b') AS fate FROM starts w),
    once AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, once_key, message_id, campaign_id, had_row,
                              started_at, status, trace)
        SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.once, w.message, w.campaign,
               true, w.begun_at, CASE w.fate WHEN 'w' THEN 'waiting' ELSE 'active' END, w.trace
        FROM placed w WHERE w.once IS NOT NULL AND w.fate IN ('b', 'w') ORDER BY w.once, w.begun_at
        ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
        RETURNING r.id, r.pipeline_id, r.org_id, r.subject_hash, r.message_id, r.started_at, r.status
    ),
    -- Apart from those with a key: ON CONFLICT where none can be would write each row twice.
    always AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, message_id, campaign_id, had_row, started_at,
                              status, trace)
        SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.message, w.campaign, true,
               w.begun_at, CASE w.fate WHEN 'w' THEN 'waiting' ELSE 'active' END, w.trace
        FROM placed w WHERE w.once IS NULL AND w.fate IN ('b', 'w')
        RETURNING r.id, r.pipeline_id, r.org_id, r.subject_hash, r.message_id, r.started_at, r.status
    ),
    made AS MATERIALIZED (SELECT * FROM once UNION ALL SELECT * FROM always),
    first AS (
        INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash,
                            org_id, message_id, awaits, settle, perform_at, created_at, status, held_by,
                            wait_ms)
        SELECT m.id, m.pipeline_id, p.step, action_lane_of(m.subject_hash),
               m.subject_hash, m.org_id, m.message_id, p.awaits,
               CASE WHEN p.awaits IS NOT NULL AND NOT c.reached AND h.by IS NULL THEN '0'::xid8 END,
               d.at, d.at, CASE WHEN h.by IS NULL THEN 'pending' ELSE 'held' END, h.by,
               CASE WHEN h.by IS NULL THEN 0 ELSE d.delay_ms END
        FROM made m JOIN p ON p.id = m.pipeline_id
        CROSS JOIN LATERAL (SELECT CASE WHEN m.status = 'waiting' THEN 'cap:' || m.org_id END AS by) h
        CROSS JOIN LATERAL (SELECT p.awaits IS NOT NULL AND (
                                SELECT action_reached(action_path(x.status), x.flags, p.awaits)
                                FROM message_inbox x WHERE x.message_id = m.message_id LIMIT 1) IS TRUE AS reached) c
        CROSS JOIN LATERAL (SELECT p.first_delay_ms + CASE WHEN c.reached THEN 0 ELSE p.within_ms END AS delay_ms) w
        CROSS JOIN LATERAL (SELECT w.delay_ms, m.started_at + CASE WHEN h.by IS NULL THEN w.delay_ms ELSE 0 END
                                                     * interval '1 millisecond' AS at) d
    ),
    counted AS (
        INSERT INTO pipeline_delta (name, started, repeated, refused, dropped, deferred)
        SELECT p.name, COALESCE(s.n, 0), w.n - w.refused - w.dropped - COALESCE(s.n, 0), w.refused, w.dropped,
               COALESCE(s.waiting, 0)
        FROM (SELECT w.pipeline_id, count(*) AS n, count(*) FILTER (WHERE w.fate = 'r') AS refused,
                     count(*) FILTER (WHERE w.fate = 'd') AS dropped
              FROM placed w GROUP BY w.pipeline_id) w
        JOIN p ON p.id = w.pipeline_id
        LEFT JOIN (SELECT m.pipeline_id, count(*) AS n, count(*) FILTER (WHERE m.status = 'waiting') AS waiting
                   FROM made m GROUP BY m.pipeline_id) s
            ON s.pipeline_id = w.pipeline_id
    )
    SELECT (SELECT count(*) FROM starts), (extract(epoch FROM clock_timestamp() - min(i.begun_at)) * 1000)::int8
    INTO runs, oldest_ms
    FROM i;
END
$$;
