-- The part of map_inbox()'s view that shows the table's other columns, as text of SQL: under their own names, unless
-- they are called like one of ours. Values of types that are not PostgreSQL's own are written by their output function:
-- a cast could be another role's function.
CREATE OR REPLACE FUNCTION inbox_others(base oid, ours text[]) RETURNS text LANGUAGE sql STABLE AS $$
    WITH RECURSIVE held (name, attnum, type) AS (
        SELECT a.attname, a.attnum, a.atttypid
        FROM pg_attribute a
        WHERE a.attrelid = base AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (ours)
        UNION ALL
        SELECT h.name, h.attnum, t.typbasetype FROM held h JOIN pg_type t ON t.oid = h.type WHERE t.typtype = 'd'
    )
    SELECT COALESCE(string_agg(format(CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN ', message_inbox.%1$I'
                                           ELSE ', CASE WHEN message_inbox.%1$I IS NOT NULL '
                                                'THEN format(''%%s'', message_inbox.%1$I) END AS %1$I'
                                      END, h.name), '' ORDER BY h.attnum), '')
    FROM held h JOIN pg_type t ON t.oid = h.type
    WHERE t.typtype <> 'd'
$$;
