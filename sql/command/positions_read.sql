-- Positions: $1 text reader (receipts, folds, actions, messages), $2 text topic, $3 int4 partition (NULL: all). One
-- row per partition: topic, cluster_id (that its log is in; NULL: not noted), partition, position (the lowest of its
-- lanes; NULL: no row), missing (lanes without a row). Column positions: of each lane, to see whether they have moved.
-- The last columns are the anchor of the lane that is furthest behind.
SELECT t.topic, t.cluster_id, n AS partition, min(p.next_offset) AS position, t.lanes - count(p.lane) AS missing,
       COALESCE(string_agg(p.next_offset::text, ',' ORDER BY p.lane), '') AS positions,
       (array_agg(p.anchor_offset ORDER BY p.next_offset))[1] AS anchor_offset,
       (array_agg(p.anchor_timestamp ORDER BY p.next_offset))[1] AS anchor_timestamp,
       (array_agg(p.anchor_crc ORDER BY p.next_offset))[1] AS anchor_crc
FROM consumer_topic t
CROSS JOIN LATERAL generate_series(0, t.partitions - 1) n
LEFT JOIN consumer_progress p ON p.topic = t.topic AND p.partition = n
WHERE $1::text = 'receipts' AND ($2::text IS NULL OR t.topic = $2::text) AND ($3::int4 IS NULL OR n = $3::int4)
GROUP BY t.topic, t.cluster_id, n, t.lanes
UNION ALL
SELECT r.topic, NULL, r.partition, r.next_offset, 0, r.next_offset::text, NULL, NULL, NULL
FROM (SELECT f.topic, f.partition, f.next_offset FROM fold_progress f WHERE $1::text = 'folds'
      UNION ALL
      SELECT a.topic, a.partition, a.next_offset FROM action_progress a WHERE $1::text = 'actions'
      UNION ALL
      SELECT m.topic, m.partition, m.next_offset FROM message_progress m WHERE $1::text = 'messages') r
WHERE ($2::text IS NULL OR r.topic = $2::text) AND ($3::int4 IS NULL OR r.partition = $3::int4)
ORDER BY 1, 3;
