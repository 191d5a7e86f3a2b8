-- Deltas are arrays that are written once and read a few times: LZ4 compresses them for less CPU than pglz. No
-- variables; search_path = the schema. A server without LZ4, or before PostgreSQL 14, keeps its own way.
DO $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT a.attrelid::regclass AS "table", a.attname AS name FROM pg_attribute a
             WHERE a.attrelid IN ('counter_delta'::regclass, 'group_delta'::regclass)
               AND a.attnum > 0 AND NOT a.attisdropped AND a.attndims > 0 LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', c."table", c.name);
    END LOOP;
EXCEPTION WHEN feature_not_supported OR syntax_error THEN
END
$$;
