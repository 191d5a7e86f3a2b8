-- Where the lane stands: $1 text[] topics, $2 int4[] partitions, $3 int4 lane. One row per pair, in the order of the
-- arrays; next_offset and generation are NULL where there is no row.
SELECT p.next_offset, p.generation
FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS w (topic, partition, n)
LEFT JOIN consumer_progress p ON p.topic = w.topic AND p.partition = w.partition AND p.lane = $3::int4
ORDER BY w.n;
