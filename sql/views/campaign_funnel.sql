-- Exact at every moment: totals and deltas in one snapshot. Each count goes to its own status and is taken off what
-- stands in the parent, so one pass gives `current`, and a condition on campaign_id reaches the tables. org_id: whose messages the
-- campaign has; NULL where it has messages of several organisations or of none. Whoever does not ask for it does not pay for it.
CREATE OR REPLACE VIEW campaign_funnel AS
SELECT c.campaign_id, c.status, COALESCE(p.name, c.status::text) AS status_name, c.messages, c.events,
       CASE WHEN c.status < 9001 THEN c.standing END AS current, o.org_id
FROM (
    SELECT r.campaign_id, v.status, sum(v.messages)::bigint AS messages, sum(v.events)::bigint AS events,
           sum(v.standing)::bigint AS standing
    FROM (
        SELECT t.campaign_id, t.status, t.messages, t.events FROM campaign_funnel_total t
        UNION ALL
        SELECT a.campaign_id, a.status, a.messages, a.events
        FROM campaign_funnel_delta d,
             unnest(d.campaign_id, d.status, d.messages, d.events) AS a (campaign_id, status, messages, events)
    ) r
    LEFT JOIN message_status_priority k ON k.code = r.status
    CROSS JOIN LATERAL (VALUES (r.status, r.messages, r.events, r.messages),
                               (k.parent, 0, 0, -r.messages)) AS v (status, messages, events, standing)
    WHERE v.status IS NOT NULL
    GROUP BY r.campaign_id, v.status
) c
LEFT JOIN message_status_priority p ON p.code = c.status
LEFT JOIN (SELECT w.campaign_id, CASE WHEN min(w.org_id) = max(w.org_id) THEN NULLIF(min(w.org_id), '') END AS org_id
           FROM campaign_organisation w
           GROUP BY w.campaign_id) o ON o.campaign_id = c.campaign_id
WHERE c.messages <> 0 OR c.events <> 0;
