-- Returns rows (messages that changed). The timeline has no place in Kafka for them: the topic is empty.
, noted AS (
    INSERT INTO message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained)
    SELECT u.id, '', -1, -1, -1, u.new, now(), u.old, u.new, 0 FROM u WHERE $4::bool
)
SELECT count(*) AS rows FROM u;
