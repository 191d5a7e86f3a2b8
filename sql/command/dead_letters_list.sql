-- Dead letters, newest first: $1 text reason (NULL: any), $2 int8 most rows (NULL: all), $3 bool with payloads.
-- Columns: topic, partition, offset, index, receipts (that the letter is of), lane, reason, detail, size (bytes),
-- payload, traceparent, dead_at (RFC 3339, UTC). The payload is text, NULL without $3. A backslash in it is doubled,
-- and bytes that are not ASCII are \ooo.
SELECT d.topic, d.partition, d."offset", d.index,
       COALESCE(cardinality(d.indexes), 1) AS receipts, d.lane, d.reason, d.detail,
       octet_length(d.payload) AS size,
       CASE WHEN $3::bool THEN encode(d.payload, 'escape') END AS payload, d.traceparent,
       to_char(d.dead_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS dead_at
FROM dead_letter d
WHERE $1::text IS NULL OR d.reason = $1::text
ORDER BY d.dead_at DESC, d.topic, d.partition, d."offset", d.index
LIMIT $2::int8;
