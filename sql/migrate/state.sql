-- The state of a schema and its inbox, from the catalogs, which every role may read. One row. Parameters: $1 text
-- schema, $2 text inbox schema, $3 text inbox table, $4 jsonb its columns (src/commands/inbox/place.h). Columns:
-- schema_exists; versions_exist (schema_version); inbox_kind (r: table, v: view, NULL: none) and inbox_mapping (its
-- comment, by inbox_view_comment.sql) of message_inbox; fillfactor of our own. Column unseen: columns of the inbox
-- table that the view lacks (NULL: none). Column uncounted: partitions of the inbox whose rows are not counted when
-- they are inserted directly, although the table's are (NULL: none). install_inbox_trigger() would count them.
-- Columns session (its role) and superuser (it is one). Column has_times: the inbox table has the columns of first
-- times, as inbox_has_times() says. books_times: count_deleted() books their counts. Column functions_open: a role
-- may execute a function that functions_private.sql would take from it.
SELECT s.oid IS NOT NULL AS schema_exists,
       EXISTS (SELECT FROM pg_class v WHERE v.relnamespace = s.oid AND v.relname = 'schema_version') AS versions_exist,
       i.relkind AS inbox_kind,
       obj_description(i.oid, 'pg_class') AS inbox_mapping,
       COALESCE((SELECT o.option_value::int FROM pg_options_to_table(i.reloptions) o
                 WHERE o.option_name = 'fillfactor'), 100) AS fillfactor,
       (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = b.oid AND a.attnum > 0 AND NOT a.attisdropped AND i.relkind = 'v'
          AND NOT EXISTS (SELECT FROM pg_attribute o
                          WHERE o.attrelid = i.oid AND o.attname = a.attname AND o.attnum > 0)) AS unseen,
       (SELECT string_agg(p.oid::regclass::text, ', ' ORDER BY p.relname)
        FROM pg_partition_tree(b.oid) t
        JOIN pg_class p ON p.oid = t.relid AND p.relowner = b.relowner AND p.relkind <> 'f'
        WHERE t.level > 0
          AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = b.oid AND g.tgname = 'receiptd_count_inserted')
          AND NOT EXISTS (SELECT FROM pg_trigger g
                          WHERE g.tgrelid = p.oid AND g.tgname = 'receiptd_count_inserted')) AS uncounted,
       (SELECT bool_and(EXISTS (SELECT FROM pg_attribute a
                                WHERE a.attrelid = b.oid
                                  AND a.attname = c.theirs::name
                                  AND a.atttypid = c.type::regtype
                                  AND NOT a.attisdropped))
        FROM jsonb_to_recordset($4::jsonb) AS c (theirs text, type text, feature text)
        WHERE c.feature = 'counters.times') AS has_times,
       EXISTS (SELECT FROM pg_proc p
               WHERE p.pronamespace = s.oid
                 AND p.proname = 'count_deleted'
                 AND p.prosrc LIKE '%forgotten_%') AS books_times,
       EXISTS (SELECT FROM pg_proc p
               CROSS JOIN LATERAL aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) a
               WHERE p.pronamespace = s.oid AND a.grantee <> p.proowner
                 AND (a.grantee = 0
                      OR p.proname IN ('count_inserted', 'count_deleted', 'refuse_change', 'install_inbox_trigger',
                                       'install_retired_trigger', 'install_change_trigger',
                                       'map_inbox', 'ladder_fill'))) AS functions_open,
       me.rolname AS session, me.rolsuper AS superuser, current_database() AS database
FROM pg_roles me
LEFT JOIN pg_namespace s ON s.nspname = $1::name
LEFT JOIN pg_class i ON i.relnamespace = s.oid AND i.relname = 'message_inbox'
LEFT JOIN pg_namespace n ON n.nspname = $2::name
LEFT JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = $3::name
WHERE me.rolname = current_user;
