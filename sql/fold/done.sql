-- Deletes the publications of shard $1 int4 below the mark $2 int8: Kafka has committed them.
DELETE FROM fold_outbox o WHERE o.lane = $1::int4 AND o.seq < $2::int8;
