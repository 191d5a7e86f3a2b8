-- Every campaign that has counters or messages, live or retired, one at a time in short snapshots: campaign_id, sorted. Messages without a
-- campaign count under ''. The recursive part walks the index on campaign_id from one campaign to the next.
WITH RECURSIVE stored (campaign_id) AS (
    (SELECT m.campaign_id FROM message_inbox m WHERE m.campaign_id IS NOT NULL ORDER BY m.campaign_id LIMIT 1)
    UNION ALL
    SELECT (SELECT m.campaign_id FROM message_inbox m WHERE m.campaign_id > s.campaign_id
            ORDER BY m.campaign_id LIMIT 1)
    FROM stored s
    WHERE s.campaign_id IS NOT NULL
)
SELECT c.campaign_id
FROM (
    SELECT s.campaign_id COLLATE "C" AS campaign_id FROM stored s WHERE s.campaign_id IS NOT NULL
    UNION
    SELECT f.campaign_id FROM campaign_funnel f
    UNION
    SELECT r.campaign_id FROM campaign_retired r
    UNION
    SELECT '' WHERE EXISTS (SELECT FROM message_inbox m WHERE m.campaign_id IS NULL)
) c
ORDER BY c.campaign_id;
