-- The funnel of one campaign by a dimension or a rule, exact at every moment. Parameters: $1 text campaign, $2 text:
-- variant, channel, gateway, link; hour, minute, reason, duplicate, time_to_deliver, time_to_open. One row per key and
-- status or flag where something was counted: key (an hour or minute in UTC), status, name, messages, events. Order:
-- by time, else the keys with the largest counts first, and buckets of times by their end (ms).
SELECT COALESCE(to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'), t.key) AS key,
       t.status, t.status_name AS name, t.messages, t.events
FROM campaign_tally t
WHERE t.campaign_id = $1::text
  AND t.kind = CASE WHEN $2::text IN ('hour', 'minute', 'reason', 'duplicate', 'time_to_deliver', 'time_to_open')
                    THEN $2::text ELSE 'by_' || $2::text END
ORDER BY t.at, CASE WHEN t.kind LIKE 'time\_%' THEN CASE t.key WHEN 'negative' THEN -1 ELSE t.key::int8 END END,
    max(GREATEST(t.messages, t.events)) OVER (PARTITION BY t.at, t.key) DESC, t.key COLLATE "C", t.status;
