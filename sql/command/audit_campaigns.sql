-- Every campaign that has counters or messages, live or retired, in one short snapshot: campaign_id, messages (about;
-- at least 1), sorted. Messages without a campaign count under ''. The recursive part walks the index on campaign_id
-- from one campaign to the next. $1 int4: only campaigns that were not proven for so many hours, those first that were
-- not proven for longest, and those that were off; 0: all.
WITH RECURSIVE stored (campaign_id) AS (
    (SELECT m.campaign_id FROM message_inbox m WHERE m.campaign_id IS NOT NULL ORDER BY m.campaign_id LIMIT 1)
    UNION ALL
    SELECT (SELECT m.campaign_id FROM message_inbox m WHERE m.campaign_id > s.campaign_id
            ORDER BY m.campaign_id LIMIT 1)
    FROM stored s
    WHERE s.campaign_id IS NOT NULL
)
SELECT c.campaign_id, GREATEST(max(c.messages), 1) AS messages
FROM (
    SELECT s.campaign_id COLLATE "C" AS campaign_id, 1::int8 AS messages FROM stored s WHERE s.campaign_id IS NOT NULL
    UNION ALL
    SELECT f.campaign_id, f.messages FROM campaign_count f
    UNION ALL
    SELECT DISTINCT r.campaign_id, 1 FROM campaign_retired r
    UNION ALL
    SELECT '', 1 WHERE EXISTS (SELECT FROM message_inbox m WHERE m.campaign_id IS NULL)
) c
LEFT JOIN campaign_proof p ON p.campaign_id = c.campaign_id AND $1::int4 > 0
WHERE p.proven_at IS NULL OR p.drift > 0 OR p.proven_at < now() - $1 * interval '1 hour'
GROUP BY c.campaign_id, p.proven_at
ORDER BY p.proven_at NULLS FIRST, c.campaign_id;
