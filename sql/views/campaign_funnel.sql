-- The funnel, exact at every moment: totals and deltas in one snapshot (campaign_count). Each count goes to its own
-- status and is taken off what stands in the parent. So one pass gives `current`, and a condition on campaign_id
-- reaches the tables. A query that does not ask for org_id (campaign_org) or duplicates (copies of receipts,
-- dedup.window) does not pay for it.
CREATE OR REPLACE VIEW campaign_funnel AS
SELECT c.campaign_id, c.status, COALESCE(p.name, c.status::text) AS status_name, c.messages, c.events,
       CASE WHEN c.status < 9001 THEN c.standing END AS current, o.org_id, COALESCE(e.duplicates, 0) AS duplicates
FROM (
    SELECT r.campaign_id, v.status, sum(v.messages)::bigint AS messages, sum(v.events)::bigint AS events,
           sum(v.standing)::bigint AS standing
    FROM campaign_count r
    LEFT JOIN message_status_priority k ON k.code = r.status
    CROSS JOIN LATERAL (VALUES (r.status, r.messages, r.events, r.messages),
                               (k.parent, 0, 0, -r.messages)) AS v (status, messages, events, standing)
    WHERE v.status IS NOT NULL
    GROUP BY r.campaign_id, v.status
) c
LEFT JOIN message_status_priority p ON p.code = c.status
LEFT JOIN (
    SELECT a.campaign_id, a.status, sum(a.events)::bigint AS duplicates
    FROM (SELECT t.campaign_id, t.status, t.events FROM campaign_tally_total t WHERE t.kind = 'duplicate'
          UNION ALL
          SELECT u.campaign_id, u.status, u.events
          FROM counter_delta d, unnest(d.campaign_id, d.status, d.events) AS u (campaign_id, status, events)
          WHERE d.kind = 'duplicate') a
    GROUP BY a.campaign_id, a.status
) e ON e.campaign_id = c.campaign_id AND e.status = c.status
LEFT JOIN campaign_org o ON o.campaign_id = c.campaign_id
WHERE c.messages <> 0 OR c.events <> 0;
