-- Partitions that came since the last run, so that they lack the triggers of the inbox (inbox_trigger_targets()), and
-- that the session may put them on: schema, part and name. None where the inbox itself has none. $1 text schema and $2
-- text name of the inbox.
SELECT n.nspname AS schema, p.relname AS part, p.oid::regclass::text AS name
FROM pg_class b JOIN pg_namespace s ON s.oid = b.relnamespace
CROSS JOIN LATERAL inbox_trigger_targets(b.oid) t
JOIN pg_class p ON p.oid = t.name::regclass JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE s.nspname = $1::name AND b.relname = $2::name AND p.oid <> b.oid AND pg_has_role(p.relowner, 'USAGE')
  AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = b.oid AND g.tgname = 'receiptd_count_inserted')
  AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = p.oid AND g.tgname = 'receiptd_count_inserted')
ORDER BY 1, 2;
