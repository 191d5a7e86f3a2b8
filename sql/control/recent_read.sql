-- The boundary of the inbox's recent set: since, and the column of message_inbox that is compared with it. No row while
-- there is none, or while its index is missing or not finished, or its table is no longer partitioned, or the inbox has
-- no created_at (another mapping since). A boundary of ids is that of one table, and counts for no other.
SELECT COALESCE(r.since::text, r.first_id) AS since,
       CASE WHEN r.since IS NOT NULL THEN 'created_at'
            WHEN EXISTS (SELECT FROM pg_attribute a
                         WHERE a.attrelid = i.oid AND a.attname = 'message_key' AND NOT a.attisdropped)
            THEN 'message_key'
            ELSE 'message_id' END AS "column"
FROM inbox_recent r
JOIN pg_class i ON i.oid = to_regclass('message_inbox')
JOIN pg_namespace s ON s.nspname = r.index_schema
JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = r.index_name
WHERE (c.relkind = 'p' OR EXISTS (SELECT FROM pg_index x WHERE x.indexrelid = c.oid AND x.indisvalid))
  AND CASE WHEN r.since IS NULL
           THEN c.oid = i.oid
                OR EXISTS (SELECT FROM pg_rewrite w
                           JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                               AND d.refobjid = c.oid
                           WHERE w.ev_class = i.oid)
           ELSE EXISTS (SELECT FROM pg_attribute a
                        WHERE a.attrelid = i.oid AND a.attname = 'created_at'
                          AND a.atttypid = 'timestamptz'::regtype AND NOT a.attisdropped) END;
