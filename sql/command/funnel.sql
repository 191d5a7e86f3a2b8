-- The funnel: $1 text campaign (NULL: all). One row per campaign and status or flag of the ladder, also where nothing was
-- counted. Columns: campaign_id, status, name, parent (NULL: the root and flags), is_flag, messages, events, current (NULL for
-- flags). Ordered by campaign and status: flags come last.
WITH counts AS MATERIALIZED (
    SELECT f.campaign_id, f.status, f.messages, f.events, f.current
    FROM campaign_funnel f
    WHERE $1::text IS NULL OR f.campaign_id = $1::text
)
SELECT c.campaign_id, k.code AS status, k.name, k.parent, k.flag_bit IS NOT NULL AS is_flag,
       COALESCE(f.messages, 0) AS messages, COALESCE(f.events, 0) AS events,
       CASE WHEN k.flag_bit IS NULL THEN COALESCE(f.current, 0) END AS current
FROM (SELECT DISTINCT campaign_id FROM counts) c
CROSS JOIN message_status_priority k
LEFT JOIN counts f ON f.campaign_id = c.campaign_id AND f.status = k.code
ORDER BY c.campaign_id, k.code;
