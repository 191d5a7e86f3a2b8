-- Events of folded topics that cannot be folded, after move.sql in its transaction: $1 text[] topics, $2 int4[]
-- partitions, $3 int8[] offsets, $4 text[] reasons, $5 text[] details, $6 bytea[] payloads, $7 text[] traceparents
-- (NULL: none). Index -2: the record as folds see it; as receipts see it, where the topic holds receipts too, it has
-- letters of its own. No lane has to do with it.
INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
SELECT l.topic, l.partition, l.at_offset, -2, 0, l.reason, l.detail, l.payload, l.traceparent
FROM unnest($1::text[], $2::int4[], $3::int8[], $4::text[], $5::text[], $6::bytea[], $7::text[])
     AS l (topic, partition, at_offset, reason, detail, payload, traceparent)
ON CONFLICT DO NOTHING;
