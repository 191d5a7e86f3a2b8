-- The funnel: $1 text campaign (NULL: all). Columns: campaign_id, status, name, is_flag, messages, events, current (NULL for
-- flags). Ordered by campaign and status: flags come last.
SELECT f.campaign_id, f.status, f.status_name AS name, f.status >= 9001 AS is_flag, f.messages, f.events, f.current
FROM campaign_funnel f
WHERE $1::text IS NULL OR f.campaign_id = $1::text
ORDER BY f.campaign_id, f.status;
