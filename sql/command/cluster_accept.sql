-- The topic goes on in another cluster, at the positions that it has; after synchronous.sql. $1 text topic, $2 text
-- cluster id. Returns rows: partitions, 0 if the topic is pinned to that cluster already. The raised generation fences
-- off every batch of the former one.
WITH
pin AS (
    SELECT t.cluster_id FROM consumer_topic t WHERE t.topic = $1::text AND t.cluster_id <> $2::text FOR UPDATE
),
raised AS (
    UPDATE consumer_topic t SET cluster_id = $2::text, generation = t.generation + 1
    FROM pin WHERE t.topic = $1::text RETURNING t.generation, pin.cluster_id AS former
),
locked AS (
    SELECT p.partition, p.lane FROM consumer_progress p, raised WHERE p.topic = $1::text
    ORDER BY p.partition, p.lane FOR UPDATE OF p
),
moved AS (
    UPDATE consumer_progress p SET generation = r.generation
    FROM raised r, locked l WHERE p.topic = $1::text AND p.partition = l.partition AND p.lane = l.lane
    RETURNING p.partition, p.lane, p.next_offset, r.former
),
noted AS (
    INSERT INTO position_change (reader, topic, partition, before, after, reason)
    SELECT 'receipts', $1::text, m.partition, string_agg(m.next_offset::text, ',' ORDER BY m.lane), min(m.next_offset),
           'cluster ' || m.former || ' -> ' || $2::text
    FROM moved m GROUP BY m.partition, m.former
    RETURNING 1
)
SELECT count(*) AS rows FROM noted;
