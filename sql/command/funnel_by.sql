-- The funnel of one campaign by a dimension: $1 text campaign, $2 text dimension. One row per key and status or flag where something was counted: key, status,
-- name, messages, events; the keys with the most messages first. Exact at every moment.
SELECT t.key, t.status, t.status_name AS name, t.messages, t.events
FROM campaign_tally t
WHERE t.campaign_id = $1::text AND t.kind = 'by_' || $2::text
ORDER BY max(t.messages) OVER (PARTITION BY t.key) DESC, t.key COLLATE "C", t.status;
