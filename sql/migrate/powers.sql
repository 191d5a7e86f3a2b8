-- Powers of the session's role and of the owner of the schema that no work of ours needs. A role may act as each role
-- that it is a member of. Before PostgreSQL 16, CREATEROLE makes it a member of any role but a superuser's.
-- Parameters: $1 text schema, $2 text[] names of further roles. Columns: grave (the role can reach files and commands
-- of the server, or is a superuser in all but name), role, power, undo (SQL for an administrator). Superusers are
-- left out: migrate refuses them, and no grant limits them.
WITH ours AS (
    SELECT DISTINCT r.oid, r.rolname
    FROM pg_roles r
    WHERE NOT r.rolsuper
      AND (r.rolname IN (current_user, session_user) OR r.rolname::text = ANY ($2::text[])
           OR r.oid = (SELECT s.nspowner FROM pg_namespace s WHERE s.nspname = $1::name))
),
server AS (
    SELECT current_setting('server_version_num')::int4 < 160000 AS grants_all
)
SELECT g.rolsuper OR NOT g.rolcreaterole OR s.grants_all AS grave, o.rolname AS role,
       CASE WHEN g.rolsuper THEN format('is a member of "%s", a superuser', g.rolname)
            WHEN NOT g.rolcreaterole
            THEN format('is a member of "%s", which reaches the server''s files or commands', g.rolname)
            WHEN s.grants_all
            THEN CASE WHEN g.oid = o.oid THEN '' ELSE format('is a member of "%s", which ', g.rolname) END
                 || 'has CREATEROLE: before PostgreSQL 16 it can make itself a member of '
                    'pg_execute_server_program, and run commands of the operating system'
            ELSE CASE WHEN g.oid = o.oid THEN '' ELSE format('is a member of "%s", which ', g.rolname) END
                 || 'has CREATEROLE, which only the first migration needs' END AS power,
       CASE WHEN g.oid = o.oid THEN format('ALTER ROLE %I NOCREATEROLE', o.rolname)
            ELSE format('REVOKE %I FROM %I', d.rolname, o.rolname) END AS undo
FROM server s
CROSS JOIN ours o
JOIN pg_roles g ON pg_has_role(o.oid, g.oid, 'MEMBER')
-- the membership that leads there, perhaps by way of others
LEFT JOIN LATERAL (
    SELECT min(p.rolname) AS rolname FROM pg_auth_members m JOIN pg_roles p ON p.oid = m.roleid
    WHERE m.member = o.oid AND pg_has_role(p.oid, g.oid, 'MEMBER')
) d ON true
WHERE g.rolsuper OR g.rolcreaterole
   OR g.rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files')
ORDER BY o.rolname, g.rolname;
