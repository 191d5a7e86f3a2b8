-- Partitions that are out of the inbox and not booked yet: schema, name. Columns: lower and upper, as note_bounds.sql
-- has noted them ('': without a lower one); noted: receiptd has detached it itself.
SELECT n.nspname AS schema, c.relname AS name, substring(k.definition FROM '>= ''([^'']*)''') AS lower,
       substring(k.definition FROM ' < ''([^'']*)''') AS upper, k.definition IS NOT NULL AS noted
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (SELECT pg_get_constraintdef(x.oid) AS definition
                   FROM pg_constraint x
                   WHERE x.conrelid = c.oid AND x.conname = 'receiptd_bounds') k
    ON true
WHERE i.inhparent = 'inbox_detached'::regclass
ORDER BY n.nspname, c.relname;
