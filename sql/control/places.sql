-- Positions of partitions, whichever instance has them: $1 text[] topics, $2 int4[] partitions. One row per pair, in
-- the order of the arrays: the position below which every lane has applied everything; NULL where there are no rows.
SELECT min(p.next_offset)
FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS w (topic, partition, n)
LEFT JOIN consumer_progress p ON p.topic = w.topic AND p.partition = w.partition
GROUP BY w.n
ORDER BY w.n;
