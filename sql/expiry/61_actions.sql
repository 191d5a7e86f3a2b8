-- Part of apply and wake where there are pipelines: notes the runs that a transition begins, and ends the awaits that
-- wait for it. A trigger fires when its status enters the message's path, or its flag is gained. Where nothing matches,
-- this costs a scan of the batch's steps.
, action_hit AS MATERIALIZED (
    SELECT s.old, s.new, s.gained, t.pipeline_id, t.code, t.wakes, t.orgs, t.campaigns
    FROM steps s JOIN pipeline_trigger t ON t.code = s.code AND s.delta > 0
),
-- actions_begin() makes the runs themselves: here they would cost more than the receipts. Organisations with much of
-- the batch get rows of their own, so that they can be made to wait for each other.
action_intent AS (
    INSERT INTO run_intent (org_id, pipeline_id, messages, orgs, campaigns)
    SELECT w.large, w.pipeline_id, array_agg(w.id), array_agg(w.org) FILTER (WHERE w.large = ''), array_agg(w.campaign)
    FROM (SELECT CASE WHEN u.org IN (SELECT c.org FROM changed c GROUP BY c.org HAVING sum(c.n) >= 50) THEN u.org ELSE '' END AS large,
                 h.pipeline_id, u.id, u.org, u.campaign
          FROM action_hit h JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
          WHERE NOT h.wakes AND (h.orgs IS NULL OR u.org = ANY (h.orgs)) AND (h.campaigns IS NULL OR u.campaign = ANY (h.campaigns))) w
    GROUP BY w.large, w.pipeline_id
),
-- By key, under all estimates of the planner: in a plan made while the table was empty, a scan of an index of all
-- pending actions costs as little, and the plan is kept while their number grows. COALESCE keeps the status from
-- proving such an index. The inner query is a lookup by message, always: a join with the waiting actions would sooner
-- or later be planned as a scan of all of them.
action_woken AS (
    UPDATE action a SET perform_at = clock_timestamp(), settle = NULL
    WHERE a.id = ANY (ARRAY(
            SELECT w.id FROM action_hit h JOIN u ON u.old = h.old AND u.new = h.new AND u.gained = h.gained
            CROSS JOIN LATERAL (SELECT b.id, b.pipeline_id, b.awaits FROM action b WHERE b.message_id = u.id COLLATE "C"
                                AND b.status = 'pending' AND b.awaits IS NOT NULL OFFSET 0) w
            WHERE h.wakes AND w.awaits = h.code AND w.pipeline_id = h.pipeline_id))
      AND COALESCE(a.status, '') = 'pending' AND a.perform_at > clock_timestamp()
)
