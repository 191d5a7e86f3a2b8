-- Stores the dead letters of a batch. Parameters: $1 text[] topics, $2 int4[] partitions, $3 int8[] offsets, $4
-- int4[] indexes (-1: the whole record), $5 int4 lane, $6 text[] reasons, $7 text[] details. Further: $8 bytea[]
-- payloads, $9 text[] traceparents (NULL: none), $10 timestamptz[] times of the records, $11 text[] indexes of the
-- receipts of a letter for many, as an array each (NULL: it is of one).
INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, at, indexes)
SELECT l.topic, l.partition, l.at_offset, l.index, $5::int4, l.reason, l.detail, l.payload, l.traceparent, l.at,
       l.indexes::int4[]
FROM unnest($1::text[], $2::int4[], $3::int8[], $4::int4[], $6::text[], $7::text[], $8::bytea[], $9::text[],
            $10::timestamptz[], $11::text[])
     AS l (topic, partition, at_offset, index, reason, detail, payload, traceparent, at, indexes)
ON CONFLICT DO NOTHING;
