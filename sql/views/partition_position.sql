-- One row for each partition: position, below which every lane has applied everything, and newest_at, Kafka's time of
-- the newest record that is applied; NULL: none, or it had no time. Producers choose that time. A time that lies
-- ahead, or is no time in milliseconds, counts as now.
CREATE OR REPLACE VIEW partition_position AS
SELECT c.topic, c.partition, min(c.next_offset) AS position,
       CASE WHEN max(c.anchor_timestamp) > 0
            THEN LEAST(to_timestamp(LEAST(max(c.anchor_timestamp), 253402300799999) / 1000.0), now()) END AS newest_at
FROM consumer_progress c
GROUP BY c.topic, c.partition;
