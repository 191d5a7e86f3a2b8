-- GET /campaigns/{campaign}/timeline: $1 text organisation (NULL: all), $2 text campaign, $3 text step: hour or
-- minute. It shows the counts that each step added to the funnel, for the newest 1 000 steps with receipts. No row:
-- no such campaign, or one of another organisation.
SELECT json_build_object(
    'campaign_id', $2::text, 'step', $3::text,
    'points', (SELECT COALESCE(json_agg(json_build_object(
                   'at', to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'statuses', p.statuses, 'events', p.events) ORDER BY p.at), '[]')
               FROM (SELECT t.at, json_object_agg(t.status_name, t.messages) AS statuses,
                            json_object_agg(t.status_name, t.events) AS events
                     FROM campaign_tally t WHERE t.campaign_id = $2::text AND t.kind = $3::text
                     GROUP BY t.at ORDER BY t.at DESC LIMIT 1000) p))::text AS body
FROM (SELECT (SELECT w.org_id FROM campaign_org w WHERE w.campaign_id = $2::text) AS org_id) o
WHERE EXISTS (SELECT FROM campaign_count c WHERE c.campaign_id = $2::text)
  AND ($1::text IS NULL OR o.org_id = $1::text);
