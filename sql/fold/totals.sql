-- Exact counts since the schema was made, one row for each rule: rule, events, quiet, hold, full, removed, open
-- (groups that were opened and not published). In each row lag_ms: how long the oldest event, due group or claimed
-- record of all rules has waited.
SELECT t.rule, sum(t.events)::int8 AS events, sum(t.quiet)::int8 AS quiet, sum(t.hold)::int8 AS hold,
       sum(t."full")::int8 AS "full", sum(t.removed)::int8 AS removed,
       sum(t.groups - t.quiet - t.hold - t."full" - t.removed)::int8 AS open,
       (SELECT GREATEST(COALESCE(extract(epoch FROM now() - min(w.at)) * 1000, 0), 0)::int8
        FROM ((SELECT e.at FROM fold_event e ORDER BY e.id LIMIT 1)
              UNION ALL
              SELECT LEAST((SELECT g.due_at FROM fold_group g WHERE g.lane = l.lane AND g.due_at IS NOT NULL
                            ORDER BY g.due_at LIMIT 1),
                           (SELECT o.claimed_at FROM fold_outbox o WHERE o.lane = l.lane ORDER BY o.seq LIMIT 1))
              FROM fold_lane l WHERE l.lane < 2) w) AS lag_ms
FROM fold_total t
GROUP BY t.rule
ORDER BY t.rule;
