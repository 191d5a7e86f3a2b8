-- Tells whether the flat own inbox can become a partition for all ids below a bound. It reads the table. Parameters:
-- $1 text pattern of ids, $2 text the bound. Columns: rows; strange (ids of another pattern) and strange_id, one of
-- them; beyond (ids of this pattern that are not below the bound) and beyond_id. Column users: views, foreign keys
-- and publications that name the table, and would be left with what is in it now (NULL: none).
SELECT s.*, (SELECT string_agg(u.name, ', ' ORDER BY u.name) FROM (
           SELECT DISTINCT 'view ' || w.ev_class::regclass AS name
           FROM pg_depend d JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
           WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = 'message_inbox'::regclass
           UNION ALL
           SELECT format('foreign key %s of %s', k.conname, k.conrelid::regclass)
           FROM pg_constraint k
           WHERE k.contype = 'f' AND k.confrelid = 'message_inbox'::regclass
           UNION ALL
           SELECT 'publication ' || p.pubname
           FROM pg_publication_rel r
           JOIN pg_publication p ON p.oid = r.prpubid
           WHERE r.prrelid = 'message_inbox'::regclass) u) AS users
FROM (SELECT count(*) AS rows, count(*) FILTER (WHERE m.message_id !~ $1::text) AS strange,
             min(m.message_id) FILTER (WHERE m.message_id !~ $1::text) AS strange_id,
             count(*) FILTER (WHERE m.message_id ~ $1::text AND m.message_id >= $2::text COLLATE "C") AS beyond,
             min(m.message_id)
                 FILTER (WHERE m.message_id ~ $1::text AND m.message_id >= $2::text COLLATE "C") AS beyond_id
      FROM message_inbox m) s;
