-- Behind topic.sql, in its transaction: of records that are no runs the letters hold the first 64 KiB, as others do.
-- Only where there are records larger than that: $1 text[] topics, $2 int4[] partitions, $3 int8[] offsets.
WITH long AS (
    DELETE FROM dead_letter d
    USING unnest($1::text[], $2::int4[], $3::int8[]) AS r (topic, partition, at_offset)
    WHERE d.topic = r.topic AND d.partition = r.partition AND d."offset" = r.at_offset AND d.index = -3
      AND octet_length(d.payload) > 65536
    RETURNING d.*
)
INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, dead_at)
SELECT l.topic, l.partition, l."offset", l.index, l.lane, l.reason,
       concat_ws('; ', l.detail, format('the first of %s bytes', octet_length(l.payload))),
       substr(l.payload, 1, 65536), l.traceparent, l.dead_at
FROM long l;
