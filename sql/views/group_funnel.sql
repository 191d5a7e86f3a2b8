-- The funnel of groups of messages (counters.groups), exact at every moment: folded counts and pending ones
-- (group_delta), in one snapshot. kind: customer or logical.
CREATE OR REPLACE VIEW group_funnel AS
SELECT c.campaign_id, c.kind, c.status, COALESCE(p.name, c.status::text) AS status_name, sum(c.n)::bigint AS groups
FROM (
    SELECT t.campaign_id, t.kind, t.status, t.messages AS n
    FROM campaign_tally t
    WHERE t.kind IN ('customer', 'logical')
    UNION ALL
    SELECT p.campaign_id, p.kind, p.code, p.delta FROM group_pending() p
) c
LEFT JOIN message_status_priority p ON p.code = c.status
GROUP BY c.campaign_id, c.kind, c.status, p.name
HAVING sum(c.n) <> 0;
