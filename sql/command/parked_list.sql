-- Receipts that wait for a message, the oldest first: $1 text account or gateway (NULL: all), $2 text topic (NULL:
-- all), $3 int8 most rows. Columns: message_id, source (the account, else the gateway that the receipt names, else its
-- topic), account, gateway_id, topic, partition, offset, index, parked_at (RFC 3339, UTC), age_s.
SELECT p.message_id, COALESCE(p.account, p.gateway, p.topic) AS source,
       p.account, p.gateway_id, p.topic, p.partition, p."offset", p.index,
       to_char(p.parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS parked_at,
       floor(extract(epoch FROM now() - p.parked_at))::int8 AS age_s
FROM parked_event p
WHERE ($1::text IS NULL OR $1::text IN (p.account, p.gateway)) AND ($2::text IS NULL OR p.topic = $2::text)
ORDER BY p.parked_at, p.topic, p.partition, p."offset", p.index
LIMIT $3::int8;
