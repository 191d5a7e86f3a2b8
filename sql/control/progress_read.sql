-- All lanes of partitions, for an assignment: $1 text[] topics, $2 int4[] partitions. One row per (topic, partition,
-- lane): topic, partition, lane, next_offset, generation, anchor_offset, anchor_timestamp, anchor_crc; ordered by the
-- arrays, then by lane. A pair without any row is left out.
SELECT p.topic, p.partition, p.lane, p.next_offset, p.generation, p.anchor_offset, p.anchor_timestamp, p.anchor_crc
FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS w (topic, partition, n)
JOIN consumer_progress p ON p.topic = w.topic AND p.partition = w.partition
ORDER BY w.n, p.lane;
