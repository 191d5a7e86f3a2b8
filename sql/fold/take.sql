-- A shard of the publisher gets a new owner. $1 int4 shard, $2 int8 Kafka's mark: everything below is published.
-- Returns epoch, lost (claims that were published and that the database has forgotten: it went back).
WITH
before AS (
    SELECT l.lane, GREATEST($2::int8 - l.next_seq, 0) AS lost FROM fold_lane l WHERE l.lane = $1::int4
),
taken AS (
    UPDATE fold_lane l
    SET epoch = l.epoch + 1, next_seq = GREATEST(l.next_seq, $2::int8),
        lost_claims = l.lost_claims + GREATEST($2::int8 - l.next_seq, 0)
    WHERE l.lane = $1::int4
    RETURNING l.lane, l.epoch
),
published AS (
    DELETE FROM fold_outbox o WHERE o.lane = $1::int4 AND o.seq < $2::int8 RETURNING o.event
),
streamed AS (
    DELETE FROM stream_event e USING published p WHERE e.id = p.event
)
SELECT t.epoch, b.lost FROM taken t JOIN before b USING (lane);
