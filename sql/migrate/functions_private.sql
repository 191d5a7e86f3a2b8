-- A role executes only functions that it was given by name: PUBLIC has none. Only the owner executes functions that
-- install triggers, map the inbox or fill the ladder, and the triggers' functions. Another role could put those on a
-- table of its own. role.sql gives the daemon's role the functions that it calls. Can be run again: a new function
-- starts with EXECUTE for PUBLIC.
DO $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT p.oid::regprocedure AS function, COALESCE(quote_ident(r.rolname), 'PUBLIC') AS role
        FROM pg_proc p
        CROSS JOIN LATERAL aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) a
        LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.pronamespace = current_schema()::regnamespace AND a.grantee <> p.proowner
          AND (a.grantee = 0
               OR p.proname IN ('count_inserted', 'count_deleted', 'refuse_change', 'install_inbox_trigger',
                                'install_retired_trigger', 'install_change_trigger', 'map_inbox', 'ladder_fill'))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', given.function, given.role);
    END LOOP;
END
$$;
