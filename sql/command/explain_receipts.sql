-- All stored facts about a message's receipts, in the order in which they were recorded: $1 text id. Columns: kind
-- (timeline, parked), topic, partition, offset, index, status, at, old, new, gained, gateway, reason, reason_class,
-- event_id, part, parts, waited (see tables/timeline), recorded_at. Receipts that the batch did not apply have two
-- more: parked (it still waits), dead (the reason of its letter).
SELECT 'timeline' AS kind, t.topic, t.partition, t."offset", t.index, t.status,
       to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, t.old, t.new, t.gained,
       t.gateway, t.reason, t.reason_class, t.event_id, t.part, t.parts, t.waited,
       to_char(t.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS recorded_at,
       EXISTS (SELECT FROM parked_event p WHERE p.topic = t.topic AND p.partition = t.partition
               AND p."offset" = t."offset" AND p.index = t.index) AS parked,
       (SELECT d.reason FROM dead_letter d WHERE d.topic = t.topic AND d.partition = t.partition
        AND d."offset" = t."offset" AND d.index = t.index) AS dead
FROM message_timeline t
WHERE t.message_id = $1::text
UNION ALL
SELECT 'parked', p.topic, p.partition, p."offset", p.index, p.status,
       to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), NULL, NULL, NULL,
       p.account, NULL, p.reason_class, NULL, p.part, p.parts,
       CASE WHEN EXISTS (SELECT FROM message_inbox m WHERE m.message_id = p.message_id)
            THEN CASE WHEN p.parts IS NOT NULL AND s.name = 'DELIVERED' THEN 'part' ELSE 'beside' END END,
       to_char(p.parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), true, NULL
FROM parked_event p LEFT JOIN message_status_priority s ON s.code = p.status
WHERE p.message_id = $1::text
  AND NOT EXISTS (SELECT FROM message_timeline t WHERE t.message_id = $1::text AND t.topic = p.topic
                  AND t.partition = p.partition AND t."offset" = p."offset" AND t.index = p.index)
ORDER BY recorded_at, topic, partition, "offset", index
LIMIT 10000;
