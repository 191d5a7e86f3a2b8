-- The pins of topics: $1 text[] topics. One row per topic in the order of the array: topic, cluster_id, generation,
-- lanes, hash_version, ladder_hash, partitions (all NULL where there is no row).
SELECT w.topic, t.cluster_id, t.generation, t.lanes, t.hash_version, t.ladder_hash, t.partitions
FROM unnest($1::text[]) WITH ORDINALITY AS w (topic, n)
LEFT JOIN consumer_topic t ON t.topic = w.topic
ORDER BY w.n;
