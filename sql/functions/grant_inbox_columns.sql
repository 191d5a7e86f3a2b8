-- Lets a role read those of the columns that message_inbox has. migrate --serve-role calls it with the columns that
-- the configuration names. A statement that reads a missing column reports it.
CREATE OR REPLACE FUNCTION grant_inbox_columns(reader text, columns text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    present text := (SELECT string_agg(format('%I', a.attname), ', ') FROM pg_attribute a
                     WHERE a.attrelid = 'message_inbox'::regclass AND a.attname::text = ANY (columns)
                       AND a.attnum > 0 AND NOT a.attisdropped);
BEGIN
    IF present IS NOT NULL THEN
        EXECUTE format('GRANT SELECT (%s) ON message_inbox TO %I', present, reader);
    END IF;
END $$;
