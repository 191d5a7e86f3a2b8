-- Groups that seem to be due, for the owner of shard 0. They are those of shard 0, and those of the other shard that
-- its publisher may not claim yet (claim.sql reads fold_lane.gathered_at). Parameter $1 int4: most of each. Returns
-- rule, key, window (microseconds), sure (bool): due even if newer events of it are in memory.
SELECT g.rule, g.key, (extract(epoch FROM r."window") * 1000000)::int8 AS "window",
       r.source = 'topic'
           OR r.removed_at IS NOT NULL
           OR g.events >= r.max_events
           OR g.first_at + r.max_hold <= now() AS sure
FROM ((SELECT f.* FROM fold_group f WHERE f.lane = 0 AND f.due_at <= now() ORDER BY f.due_at LIMIT $1::int4)
      UNION ALL
      (SELECT f.* FROM fold_group f
       WHERE f.lane = 1 AND f.due_at <= now() AND f.due_at > (SELECT fold_as_of())
       ORDER BY f.due_at LIMIT $1::int4)) g
JOIN fold_rule r ON r.rule = g.rule;
