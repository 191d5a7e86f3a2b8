-- The funnel: $1 text campaign (NULL: all), $2 text organisation that alone has messages in it (NULL: any). One row per campaign and status
-- or flag of the ladder, also where nothing was counted. Columns: campaign_id, status, name, parent (NULL: the root and flags), is_flag,
-- messages, events, current (NULL for flags), org_id (NULL: several organisations, or none). Ordered by campaign and status: flags come
-- last.
WITH counts AS MATERIALIZED (
    SELECT f.campaign_id, f.status, f.messages, f.events, f.current, f.org_id
    FROM campaign_funnel f
    WHERE ($1::text IS NULL OR f.campaign_id = $1::text) AND ($2::text IS NULL OR f.org_id = $2::text)
)
SELECT c.campaign_id, k.code AS status, k.name, k.parent, k.flag_bit IS NOT NULL AS is_flag,
       COALESCE(f.messages, 0) AS messages, COALESCE(f.events, 0) AS events,
       CASE WHEN k.flag_bit IS NULL THEN COALESCE(f.current, 0) END AS current, c.org_id
FROM (SELECT DISTINCT campaign_id, org_id FROM counts) c
CROSS JOIN message_status_priority k
LEFT JOIN counts f ON f.campaign_id = c.campaign_id AND f.status = k.code
ORDER BY c.campaign_id, k.code;
