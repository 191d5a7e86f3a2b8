-- Publications that are claimed and not known to be published, in order. $1 int4 shard, $2 int8 first seq, $3 int4 most
-- rows. A transaction of its own: nothing is locked while the answer is on its way. Returns seq, id, destination,
-- message_key, payload.
SELECT o.seq, o.id, o.destination, o.message_key, o.payload
FROM fold_outbox o
WHERE o.lane = $1::int4 AND o.seq >= $2::int8
ORDER BY o.seq
LIMIT $3::int4;
