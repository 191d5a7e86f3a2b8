-- The funnel: $1 text campaign (NULL: all), $2 text organisation that alone has messages in it (NULL: any), $3 bool: leave out statuses
-- and flags where nothing was counted, except the roots. One row per campaign and status or flag of the ladder. Columns: campaign_id,
-- status, name, parent (NULL: the root and flags), is_flag, messages, events, current (NULL for flags), org_id (NULL: several
-- organisations, or none). Ordered by campaign and status: flags come last. The roots alone are multiplied by the campaigns: all
-- statuses would be ten times the rows.
WITH counts AS MATERIALIZED (
    SELECT f.campaign_id, f.status, f.messages, f.events, f.current, f.org_id
    FROM campaign_funnel f
    WHERE ($1::text IS NULL OR f.campaign_id = $1::text) AND ($2::text IS NULL OR f.org_id = $2::text)
)
SELECT r.campaign_id, r.status, k.name, k.parent, k.flag_bit IS NOT NULL AS is_flag, r.messages, r.events,
       CASE WHEN k.flag_bit IS NULL THEN r.current END AS current, r.org_id
FROM (
    SELECT f.campaign_id, f.status, f.messages, f.events, f.current, f.org_id FROM counts f
    UNION ALL
    SELECT c.campaign_id, p.code, 0, 0, 0, c.org_id
    FROM (SELECT DISTINCT campaign_id, org_id FROM counts) c
    JOIN message_status_priority p ON NOT $3::bool OR (p.parent IS NULL AND p.flag_bit IS NULL)
    WHERE NOT EXISTS (SELECT FROM counts f WHERE f.campaign_id = c.campaign_id AND f.status = p.code)
) r
JOIN message_status_priority k ON k.code = r.status
ORDER BY r.campaign_id, r.status;
