-- The role that migrate gives rights: $1 text role, $2 text schema. One row. Columns: role_exists; may_create (the
-- session may create roles); session (its role); owner (of the schema, or who will own it). Column owns: the role can
-- act as the owner, since it is the owner, one of its members or a superuser.
SELECT r.oid IS NOT NULL AS role_exists,
       me.rolsuper OR me.rolcreaterole AS may_create,
       me.rolname AS session,
       o.rolname AS owner,
       r.oid IS NOT NULL AND pg_has_role(r.oid, o.oid, 'MEMBER') AS owns
FROM pg_roles me
LEFT JOIN pg_namespace s ON s.nspname = $2::name
JOIN pg_roles o ON o.oid = COALESCE(s.nspowner, me.oid)
LEFT JOIN pg_roles r ON r.rolname = $1::name
WHERE me.rolname = current_user;
