-- Puts off groups that seemed due, but have events in the publisher's memory: they are checked again later. After
-- fence.sql. Parameters: $1 text[] rules, $2 text[] keys, $3 timestamptz[] when. NULL: gather will say, at the latest
-- when they have been held long enough.
UPDATE fold_group g
SET due_at = LEAST(w.until, g.first_at + r.max_hold)
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS w (rule, key, until)
JOIN fold_rule r ON r.rule = w.rule
WHERE g.rule = w.rule AND g.key = w.key AND g.due_at <= now();
