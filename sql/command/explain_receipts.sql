-- All stored facts about a message's receipts, in the order in which they were recorded: $1 text id. Columns: kind (timeline,
-- parked), topic, partition, offset, index, status, at, old, new, gained, recorded_at, and for the timeline's unknown ones
-- whether they still wait (parked) or were set aside (dead).
SELECT 'timeline' AS kind, t.topic, t.partition, t."offset", t.index, t.status,
       to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, t.old, t.new, t.gained,
       to_char(t.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS recorded_at,
       EXISTS (SELECT FROM parked_event p WHERE p.topic = t.topic AND p.partition = t.partition
               AND p."offset" = t."offset" AND p.index = t.index) AS parked,
       EXISTS (SELECT FROM dead_letter d WHERE d.topic = t.topic AND d.partition = t.partition
               AND d."offset" = t."offset" AND d.index = t.index) AS dead
FROM message_timeline t
WHERE t.message_id = $1::text
UNION ALL
SELECT 'parked', p.topic, p.partition, p."offset", p.index, p.status,
       to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), NULL, NULL, NULL,
       to_char(p.parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), true, false
FROM parked_event p
WHERE p.message_id = $1::text
  AND NOT EXISTS (SELECT FROM message_timeline t WHERE t.message_id = $1::text AND t.topic = p.topic
                  AND t.partition = p.partition AND t."offset" = p."offset" AND t.index = p.index)
ORDER BY recorded_at, topic, partition, "offset", index
LIMIT 10000;
