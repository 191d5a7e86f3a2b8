-- Where there are pipelines: notes the runs that a batch's transitions begin, and ends the awaits that wait for them.
-- A trigger fires when its status enters the message's path, or its flag is gained.
--
-- Messages that changed and reach what pipelines subscribe to, as the instance knows it, an element each: $1 text[]
-- ids, $2 text[] organisations, $3 text[] campaigns, $4 int2[] statuses before and $5 after, $6 int4[] flags gained.
-- The other messages: $7 int2[] statuses after, each once, $8 int4 all flags gained. It raises RD003 if a pipeline
-- subscribes to one of these after all, and the batch is sent again. Where nothing matches, this costs a look at the
-- triggers. Again of the first: $9 text[] sampled traceparents (NULL: none); an empty array: no message has one.
WITH
u AS MATERIALIZED (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::text[], $4::int2[], $5::int2[], $6::int4[], $9::text[])
         AS u (id, org, campaign, old, new, gained, trace)
),
action_hit AS MATERIALIZED (
    SELECT g.old, g.new, g.gained, t.pipeline_id, t.code, t.wakes, t.orgs, t.campaigns
    FROM (SELECT DISTINCT u.old, u.new, u.gained FROM u) g
    CROSS JOIN LATERAL transition_codes(g.old, g.new, g.gained) d
    JOIN pipeline_trigger t ON t.code = d.code AND d.delta > 0
),
-- actions_begin() makes the runs themselves: here they would cost more than the receipts. Organisations with much of
-- the batch get rows of their own, so that they can be made to wait for each other.
action_intent AS (
    INSERT INTO run_intent (org_id, pipeline_id, messages, orgs, campaigns, traces)
    SELECT w.large, w.pipeline_id, array_agg(w.id), array_agg(w.org) FILTER (WHERE w.large = ''),
           array_agg(w.campaign), CASE WHEN count(w.trace) > 0 THEN array_agg(w.trace) END
    FROM (SELECT CASE WHEN u.org IN (SELECT c.org FROM u c GROUP BY c.org HAVING count(*) >= 50) THEN u.org
                      ELSE '' END AS large,
                 h.pipeline_id, u.id, u.org, u.campaign, u.trace
          FROM action_hit h JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
          WHERE NOT h.wakes
            AND (h.orgs IS NULL OR u.org = ANY (h.orgs))
            AND (h.campaigns IS NULL OR u.campaign = ANY (h.campaigns))) w
    GROUP BY w.large, w.pipeline_id
),
-- The row is found by key, whatever the planner estimates. In a plan made while the table was empty, a scan of an
-- index of all pending actions costs as little, and the plan is kept while their number grows. COALESCE keeps the
-- status from proving such an index. The inner query always is a look-up by message. The planner would sooner or
-- later turn a join with the waiting actions into a scan of all of them.
action_woken AS (
    UPDATE action a SET perform_at = clock_timestamp(), settle = NULL
    WHERE a.id = ANY (ARRAY(
            SELECT w.id FROM action_hit h JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
            CROSS JOIN LATERAL (SELECT b.id, b.pipeline_id, b.awaits FROM action b WHERE b.message_id = u.id COLLATE "C"
                                AND b.status = 'pending' AND b.awaits IS NOT NULL OFFSET 0) w
            WHERE h.wakes AND w.awaits = h.code AND w.pipeline_id = h.pipeline_id))
      AND COALESCE(a.status, '') = 'pending' AND a.perform_at > clock_timestamp()
)
SELECT actions_unsubscribed($7::int2[], $8::int4);
