-- Tells how long deltas wait: whether one waits whose id is above the odd parameter and at most the even one. It also
-- gives the last id that was assigned, for both tables. Parameters: $1, $2 int8: counter_delta; $3, $4: group_delta.
-- Rows in this order: n, waits, last. The lower bound keeps the scan away from rows that went long ago and that an
-- open snapshot keeps from being removed.
SELECT 0 AS n, EXISTS (SELECT FROM counter_delta d WHERE d.id > $1::int8 AND d.id <= $2::int8) AS waits,
       COALESCE(pg_sequence_last_value('counter_delta_id_seq'), 0) AS last
UNION ALL
SELECT 1, EXISTS (SELECT FROM group_delta d WHERE d.id > $3::int8 AND d.id <= $4::int8),
       COALESCE(pg_sequence_last_value('group_delta_id_seq'), 0)
ORDER BY n;
