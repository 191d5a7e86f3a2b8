-- Kafka has committed everything below $2 int8 of lane $1 int4.
DELETE FROM fold_outbox o WHERE o.lane = $1::int4 AND o.seq < $2::int8;
