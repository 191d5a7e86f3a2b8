-- The partitions of the inbox but the default one, by their bounds. $1 text schema and $2 text name of the inbox.
-- Columns: schema, name, lower and upper (texts; NULL: without a bound on this side, or the bound is no single text);
-- frozen: maintain has frozen it.
SELECT n.nspname AS schema, c.relname AS name, substring(b.bound FROM '^FOR VALUES FROM \(''([^'']*)''\)') AS lower,
       substring(b.bound FROM ' TO \(''([^'']*)''\)$') AS upper,
       COALESCE(obj_description(c.oid, 'pg_class') = 'receiptd: frozen', false) AS frozen
FROM pg_class w
JOIN pg_namespace s ON s.oid = w.relnamespace
JOIN pg_inherits i ON i.inhparent = w.oid
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b
WHERE s.nspname = $1::name AND w.relname = $2::name AND b.bound <> 'DEFAULT'
ORDER BY upper;
