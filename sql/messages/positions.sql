-- Where the reader of topics stands: $1 text[] topics, $2 int4[] partitions. One row per pair, in the order of the
-- arrays; NULL where there is none.
SELECT p.next_offset
FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS w (topic, partition, n)
LEFT JOIN message_progress p ON p.topic = w.topic AND p.partition = w.partition
ORDER BY w.n;
