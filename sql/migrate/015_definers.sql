-- Version 15: functions are executed by those who were told by name, and what counts inserted rows looks at types first.
-- Who the functions with rights of their own belong to: definers.sql.

-- Nobody but the owner installs triggers, maps the inbox or fills the ladder, and no trigger function is put on a table of
-- somebody's own; of the rest PUBLIC has nothing. role.sql gives the daemon's role what it calls.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC;
DO $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT p.oid::regprocedure AS function, r.rolname AS role
        FROM pg_proc p, aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.pronamespace = current_schema()::regnamespace AND a.grantee <> p.proowner
          AND p.proname IN ('count_inserted', 'install_inbox_trigger', 'map_inbox', 'ladder_fill')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', given.function, given.role);
    END LOOP;
END
$$;

-- Refuses columns that are missing or of types that are not PostgreSQL's own. Casts and operators of other types are functions
-- of whoever made the type, and would run with the rights of whoever looks at a value: so this comes before the first look.
-- A domain counts as what it stands on: nobody can give it casts.
CREATE FUNCTION check_inbox_columns(base oid, columns text[]) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    bad record;
BEGIN
    WITH RECURSIVE held (name, declared, type) AS (
        SELECT c.name, a.atttypid, a.atttypid
        FROM unnest(columns) c (name)
        LEFT JOIN pg_attribute a ON a.attrelid = base AND a.attname = c.name AND a.attnum > 0
        UNION ALL
        SELECT h.name, h.declared, t.typbasetype
        FROM held h JOIN pg_type t ON t.oid = h.type
        WHERE t.typtype = 'd'
    )
    SELECT h.name, format_type(h.declared, NULL) AS type INTO bad
    FROM held h LEFT JOIN pg_type t ON t.oid = h.type
    WHERE t.oid IS NULL OR t.typtype <> 'd' AND t.typnamespace <> 'pg_catalog'::regnamespace
    ORDER BY h.name LIMIT 1;
    IF bad.type IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42804',
            MESSAGE = format('column %I of inbox table %s is of type %s, which is not one of PostgreSQL''s own: its casts are '
                             'somebody''s functions', bad.name, base::regclass, bad.type),
            HINT = 'make it text, or let inbox.columns name another column, and run receiptd migrate';
    ELSIF bad.name IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42703',
            MESSAGE = format('inbox table %s has no column %I', base::regclass, bad.name),
            HINT = 'check inbox.columns, and run receiptd migrate';
    END IF;
END
$$;

-- Refuses a table that is neither the inbox nor what the inbox is a view of: its inserted rows are not counted.
CREATE FUNCTION check_counted(base oid, inbox oid) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF base IS DISTINCT FROM inbox AND NOT EXISTS (
        SELECT FROM pg_rewrite w
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
        WHERE w.ev_class = inbox AND d.refclassid = 'pg_class'::regclass AND d.refobjid = base) THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = format('table %s is not the inbox: its rows are not counted', base::regclass);
    END IF;
END
$$;
REVOKE ALL ON FUNCTION check_inbox_columns(oid, text[]), check_counted(oid, oid) FROM PUBLIC;

INSERT INTO schema_version (version) VALUES (15);
