-- Adds positions of partitions that are read for the first time: $1 text[] topics, $2 int4[] partitions, $3 int8[]
-- offsets. Of two instances one wins.
INSERT INTO message_progress (topic, partition, next_offset)
SELECT w.topic, w.partition, w.next_offset
FROM unnest($1::text[], $2::int4[], $3::int8[]) AS w (topic, partition, next_offset)
ORDER BY w.topic, w.partition
ON CONFLICT DO NOTHING;
