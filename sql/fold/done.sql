-- Deletes the publications of shard $1 int4 below the mark $2 int8: Kafka has committed them.
WITH published AS (
    DELETE FROM fold_outbox o WHERE o.lane = $1::int4 AND o.seq < $2::int8 RETURNING o.event
)
DELETE FROM stream_event e USING published p WHERE e.id = p.event;
