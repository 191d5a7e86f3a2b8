-- Refuses columns that are missing or of types that are not PostgreSQL's own. Casts and operators of other types are
-- functions of the type's maker, and would run with the rights of each role that reads a value: so this comes before
-- the first read. A domain counts as what it stands on: it cannot have casts.
CREATE OR REPLACE FUNCTION check_inbox_columns(base oid, columns text[]) RETURNS void LANGUAGE plpgsql STABLE AS $$
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
            MESSAGE = format('column %I of inbox table %s is of type %s, which is not one of PostgreSQL''s '
                             'own: its casts are another role''s functions', bad.name, base::regclass, bad.type),
            HINT = format('make it text, or let inbox.columns name another column: ALTER TABLE %s ALTER '
                          'COLUMN %I TYPE text',
                          base::regclass, bad.name);
    ELSIF bad.name IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42703',
            MESSAGE = format('inbox table %s has no column %I', base::regclass, bad.name),
            HINT = 'check inbox.columns';
    END IF;
END
$$;
