-- Rows of the stream that are claimed and not known to be published, in order. $1 int4 shard, $2 int8 first seq, $3
-- int4 most rows. Returns seq, destination, kind, size (messages), and the arrays as stream_event has them.
SELECT o.seq, o.destination, e.kind, cardinality(e.ids) AS size, e.ids, e.orgs, e.campaigns, e.old, e.new, e.flags,
       e.gained, e.times, e.gateways, e.reasons, e.columns, e.traces
FROM (SELECT c.* FROM fold_outbox c
      WHERE c.lane = $1::int4 AND c.seq >= $2::int8
      ORDER BY c.seq LIMIT $3::int4) o
JOIN stream_event e ON e.id = o.event
ORDER BY o.seq;
