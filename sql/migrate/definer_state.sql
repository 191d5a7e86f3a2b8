-- The owners of the functions that have rights of their own: $1 text schema. Two rows, counter and watcher. Roles
-- belong to all databases of a server. So the name holds a hash of database and schema, and one role serves one
-- schema. Columns: role (its name), role_exists; usable (the session may give it functions), may_create, may_join
-- (the session may make itself its member). Column problem: what makes the role unfit (NULL: none), and undo: how to
-- mend that. session; database. Columns: function_exists and settled (it belongs to the role, which has all its
-- rights); sees (it may see all sessions) and may_show (the session may let it).
WITH definer AS (
    SELECT d.kind, d.function, me.oid AS me, me.rolname AS session,
           me.rolsuper, me.rolsuper OR me.rolcreaterole AS may_create,
           -- Since 16 CREATEROLE alone gives no role that others have made.
           me.rolsuper OR me.rolcreaterole AND current_setting('server_version_num')::int4 < 160000 AS may_grant,
           format('receiptd_%s_%s', d.kind,
                  left(encode(sha256(convert_to(format('%I.%I', current_database(), $1::text), 'UTF8')),
                              'hex'), 12)) AS role
    FROM (VALUES ('counter', 'count_inserted'), ('watcher', 'watch_server')) AS d (kind, function)
    JOIN pg_roles me ON me.rolname = current_user
),
foreign_member AS (
    SELECT DISTINCT ON (m.roleid) m.roleid, f.rolname
    FROM pg_auth_members m
    JOIN pg_roles f ON f.oid = m.member
    WHERE NOT f.rolsuper AND NOT f.rolcreaterole AND f.rolname <> current_user
      AND NOT EXISTS (SELECT FROM pg_namespace s WHERE s.nspname = $1::name AND s.nspowner = f.oid)
    ORDER BY 1, 2
),
foreign_group AS (
    SELECT DISTINCT ON (m.member) m.member, g.rolname
    FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
    WHERE g.rolname <> 'pg_read_all_stats'
    ORDER BY 1, 2
)
SELECT d.kind, d.role, r.oid IS NOT NULL AS role_exists, d.session, current_database() AS database, d.may_create,
       d.rolsuper OR r.oid IS NOT NULL AND pg_has_role(d.me, r.oid, 'USAGE') AS usable,
       r.oid IS NOT NULL AND (d.may_grant OR pg_has_role(d.me, r.oid, 'MEMBER WITH ADMIN OPTION')) AS may_join,
       CASE WHEN r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls
            THEN 'may log in or has other attributes'
            WHEN g.rolname IS NOT NULL THEN format('is a member of "%s"', g.rolname)
            WHEN m.rolname IS NOT NULL THEN format('has the member "%s"', m.rolname) END AS problem,
       CASE WHEN r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls
            THEN format('ALTER ROLE %I NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS', d.role)
            WHEN g.rolname IS NOT NULL THEN format('REVOKE %I FROM %I', g.rolname, d.role)
            WHEN m.rolname IS NOT NULL THEN format('REVOKE %I FROM %I', d.role, m.rolname) END AS undo,
       p.oid IS NOT NULL AS function_exists,
       COALESCE(p.proowner = r.oid AND (d.kind <> 'counter' OR has_table_privilege(r.oid, o.oid, 'DELETE')
                AND has_any_column_privilege(r.oid, v.oid, 'SELECT')), false)
           AND NOT EXISTS (SELECT FROM pg_proc q
                           WHERE d.kind = 'counter' AND q.pronamespace = n.oid
                             AND q.proname IN ('count_deleted', 'claim_push')
                             AND q.proowner <> r.oid) AS settled,
       r.oid IS NOT NULL AND pg_has_role(r.oid, s.oid, 'USAGE') AS sees,
       d.may_grant OR pg_has_role(d.me, s.oid, 'MEMBER WITH ADMIN OPTION') AS may_show
FROM definer d
JOIN pg_roles s ON s.rolname = 'pg_read_all_stats'
LEFT JOIN pg_roles r ON r.rolname = d.role
LEFT JOIN foreign_member m ON m.roleid = r.oid
LEFT JOIN foreign_group g ON g.member = r.oid
LEFT JOIN pg_namespace n ON n.nspname = $1::name
-- the table on which the counter got its last right
LEFT JOIN pg_class o ON o.relnamespace = n.oid AND o.relname = 'message_part'
-- a view that the platform may drop, to change its table
LEFT JOIN pg_class v ON v.relnamespace = n.oid AND v.relname = 'message_inbox'
LEFT JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = d.function AND p.pronargs = 0
ORDER BY d.kind;
