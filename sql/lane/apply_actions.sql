-- A block for apply.sql and wake.sql: runs that begin by a transition, and awaits that it ends. A trigger fires when its status
-- enters the message's path, or its flag is gained. Where nothing matches, this costs a look at the groups of the batch.
action_hit AS MATERIALIZED (
    SELECT g.old, g.new, g.gained, t.pipeline_id, t.code, t.wakes, t.orgs, t.campaigns
    FROM (SELECT DISTINCT c.old, c.new, c.gained FROM changed c) g
    JOIN pipeline_trigger t
      ON (t.code >= 9001 AND (g.gained >> (t.code - 9001)) & 1 = 1)
         OR EXISTS (SELECT FROM path_delta d WHERE d.old = g.old AND d.new = g.new AND d.code = t.code AND d.delta > 0)
),
-- What begins, looked up once for a batch and not for each run of it.
action_pipeline AS MATERIALIZED (
    SELECT p.id, p.name, p.org_field, p.subject_field, p.once_fields, p.first_delay_ms, s.step, s.awaits, s.within_ms
    FROM (SELECT DISTINCT h.pipeline_id FROM action_hit h WHERE NOT h.wakes) h
    JOIN pipeline p ON p.id = h.pipeline_id
    JOIN pipeline_step s ON s.pipeline_id = p.id AND s.step = p.first_step
),
action_wanted AS MATERIALIZED (
    SELECT p.id AS pipeline_id, p.name,
           CASE WHEN p.org_field = 'org_id' THEN u.org ELSE COALESCE(
               (SELECT to_jsonb(m) ->> p.org_field FROM message_inbox m WHERE m.message_id = u.id), '') END AS org,
           CASE WHEN p.subject_field = 'message_id' THEN u.id ELSE COALESCE(
               (SELECT to_jsonb(m) ->> p.subject_field FROM message_inbox m WHERE m.message_id = u.id), u.id) END AS subject,
           u.id, u.campaign, u.new,
           CASE WHEN u.gained <> 0 OR p.awaits >= 9001 THEN
               (SELECT m.flags | u.gained FROM message_inbox m WHERE m.message_id = u.id) END AS flags,
           CASE WHEN p.once_fields IS NOT NULL THEN
               (SELECT (jsonb_build_array(p.name) || jsonb_agg(COALESCE(to_jsonb(m) ->> o.name, '') ORDER BY o.n))::text
                FROM message_inbox m, unnest(p.once_fields) WITH ORDINALITY AS o (name, n) WHERE m.message_id = u.id) END AS once
    FROM action_hit h
    JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
    JOIN action_pipeline p ON p.id = h.pipeline_id
    WHERE NOT h.wakes AND (h.orgs IS NULL OR u.org = ANY (h.orgs)) AND (h.campaigns IS NULL OR u.campaign = ANY (h.campaigns))
),
-- In the order of the keys: two lanes that begin the same runs do not wait for each other in a circle.
action_once AS (
    INSERT INTO run (pipeline_id, org_id, subject, subject_hash, once_key, message_id, campaign_id, at_status, at_flags)
    SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.once, w.id, w.campaign, w.new, w.flags
    FROM action_wanted w
    WHERE w.once IS NOT NULL
    ORDER BY w.once
    ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
    RETURNING id, pipeline_id, org_id, subject_hash, message_id, at_status, at_flags
),
-- Looking for a conflict that cannot be would write each row down twice.
action_always AS (
    INSERT INTO run (pipeline_id, org_id, subject, subject_hash, message_id, campaign_id, at_status, at_flags)
    SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.id, w.campaign, w.new, w.flags
    FROM action_wanted w
    WHERE w.once IS NULL
    RETURNING id, pipeline_id, org_id, subject_hash, message_id, at_status, at_flags
),
action_run AS MATERIALIZED (
    SELECT * FROM action_once
    UNION ALL
    SELECT * FROM action_always
),
action_first AS (
    INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, awaits, perform_at)
    SELECT r.id, r.pipeline_id, p.step, action_lane_of(r.subject_hash), r.subject_hash, r.org_id, r.message_id, p.awaits,
           clock_timestamp() + (p.first_delay_ms + CASE WHEN p.awaits IS NULL THEN p.within_ms
                                                        WHEN action_reached(action_path(r.at_status), r.at_flags, p.awaits) THEN 0
                                                        ELSE p.within_ms END) * interval '1 millisecond'
    FROM action_run r
    JOIN action_pipeline p ON p.id = r.pipeline_id
),
action_counted AS (
    INSERT INTO pipeline_delta (name, started, repeated)
    SELECT p.name, COALESCE(s.n, 0), w.n - COALESCE(s.n, 0)
    FROM (SELECT pipeline_id, count(*) AS n FROM action_wanted GROUP BY pipeline_id) w
    JOIN action_pipeline p ON p.id = w.pipeline_id
    LEFT JOIN (SELECT pipeline_id, count(*) AS n FROM action_run GROUP BY pipeline_id) s ON s.pipeline_id = w.pipeline_id
),
-- A look-up by message, always: a join with what waits would sooner or later be planned as a scan of all of it.
action_reached_now AS MATERIALIZED (
    SELECT w.id
    FROM action_hit h
    JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
    CROSS JOIN LATERAL (SELECT a.id, a.pipeline_id, a.awaits FROM action a
                        WHERE a.message_id = u.id AND a.status = 'pending' AND a.awaits IS NOT NULL OFFSET 0) w
    WHERE h.wakes AND w.awaits = h.code AND w.pipeline_id = h.pipeline_id
),
action_woken AS (
    UPDATE action a SET perform_at = clock_timestamp(), settle = NULL
    FROM action_reached_now w
    WHERE a.id = w.id AND a.status = 'pending' AND a.perform_at > clock_timestamp()
)
