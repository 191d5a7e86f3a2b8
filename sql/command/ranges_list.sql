-- Ranges whose messages are still looked for, the oldest first. The person is not shown. Parameters: $1 text account
-- (NULL: all), $2 text topic (NULL: all), $3 int8 most rows. Columns: parked_at (RFC 3339, UTC), age_s, status,
-- until, source (the account), topic, partition, offset, index. Column messages: for how many a receipt was parked so
-- far. Column next_s: until they are looked for again.
SELECT to_char(r.stored_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS parked_at,
       floor(extract(epoch FROM now() - r.stored_at))::int8 AS age_s,
       COALESCE(s.name, r.status::text) AS status,
       to_char(r.until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS until, r.account AS source, r.topic,
       r.partition, r."offset", r.index, r.found AS messages,
       GREATEST(ceil(extract(epoch FROM r.due_at - now())), 0)::int8 AS next_s
FROM range_receipt r LEFT JOIN message_status_priority s ON s.code = r.status
WHERE ($1::text IS NULL OR r.account = $1::text) AND ($2::text IS NULL OR r.topic = $2::text)
ORDER BY r.stored_at, r.topic, r.partition, r."offset", r.index
LIMIT $3::int8;
