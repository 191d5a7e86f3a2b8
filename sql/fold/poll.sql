-- Is there anything to do for a shard of the publisher? $1 int4 shard. Returns transitions (bool), topics (bool): rows
-- to be gathered, which shard 0 does for all; due (bool): for shard 0 groups of any shard that no publisher has served,
-- for shard 2 rows of the stream; claimed (bool); now (microseconds since 1970). Column lane of the tables is the
-- shard.
SELECT $1::int4 = 0 AND EXISTS (SELECT FROM fold_event e WHERE e.rules IS NULL) AS transitions,
       $1::int4 = 0 AND EXISTS (SELECT FROM fold_event e WHERE e.rules IS NOT NULL) AS topics,
       CASE WHEN $1::int4 = 0
            THEN EXISTS (SELECT FROM fold_group g WHERE g.lane = 0 AND g.due_at <= now())
                 OR EXISTS (SELECT FROM fold_group g
                            WHERE g.lane = 1 AND g.due_at <= now() AND g.due_at > (SELECT fold_as_of()))
            WHEN $1::int4 = 2 THEN EXISTS (SELECT FROM stream_event)
            ELSE EXISTS (SELECT FROM fold_group g
                         WHERE g.lane = $1::int4
                           AND g.due_at <= now()
                           AND g.due_at <= (SELECT fold_as_of())) END AS due,
       EXISTS (SELECT FROM fold_outbox o WHERE o.lane = $1::int4) AS claimed,
       (extract(epoch FROM now()) * 1000000)::int8 AS now;
