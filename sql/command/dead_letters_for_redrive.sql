-- Dead letters to be decoded again, after a key, in the order of their keys: $1 text reason (NULL: any), $2 text topic,
-- $3 int4 partition, $4 int8 offset, $5 int4 index (the last key of the page before; '', -1, -1, -1 at first), $6 int8 most
-- rows. Columns: topic, partition, offset, index, lane, reason, payload (bytea), traceparent, dead_at_ms.
SELECT d.topic, d.partition, d."offset", d.index, d.lane, d.reason, d.payload, d.traceparent,
       (extract(epoch FROM d.dead_at) * 1000)::int8 AS dead_at_ms
FROM dead_letter d
WHERE (d.topic, d.partition, d."offset", d.index) > ($2::text, $3::int4, $4::int8, $5::int4)
  AND ($1::text IS NULL OR d.reason = $1::text)
ORDER BY d.topic, d.partition, d."offset", d.index
LIMIT $6::int8;
