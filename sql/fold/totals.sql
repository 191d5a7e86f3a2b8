-- Exact counts since the schema was made, one row for each rule: rule, events, quiet, hold, full, removed, open
-- (groups that were opened and not published).
SELECT t.rule, sum(t.events)::int8 AS events, sum(t.quiet)::int8 AS quiet, sum(t.hold)::int8 AS hold,
       sum(t."full")::int8 AS "full", sum(t.removed)::int8 AS removed,
       sum(t.groups - t.quiet - t.hold - t."full" - t.removed)::int8 AS open
FROM fold_total t
GROUP BY t.rule
ORDER BY t.rule;
