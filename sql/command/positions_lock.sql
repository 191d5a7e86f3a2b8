-- Locks the rows of a partition, in the order of fence(): $1 text topic, $2 int4 partition. What moves them waits.
SELECT p.lane FROM consumer_progress p WHERE p.topic = $1::text AND p.partition = $2::int4 ORDER BY p.lane FOR UPDATE;
