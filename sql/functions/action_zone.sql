-- The time zone of a run: action_value() of that field, where it is the name of a zone, else fallback. data: what the
-- run brought along; message: its message, or NULL; field: NULL: fallback. Only names count: AT TIME ZONE would read an
-- offset such as +02:00 with the opposite sign, as POSIX has it.
CREATE OR REPLACE FUNCTION action_zone(data jsonb, message text, field text, fallback text)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    zone text;
BEGIN
    IF field IS NULL THEN
        RETURN fallback;
    END IF;
    zone := action_value(data, message, field);
    IF zone ~ '^([A-Za-z]+([_/-][A-Za-z]+)*|Etc/GMT[+-][0-9]+)$' THEN
        BEGIN
            PERFORM now() AT TIME ZONE zone;
            RETURN zone;
        EXCEPTION WHEN invalid_parameter_value THEN
            NULL; -- PostgreSQL does not know it
        END;
    END IF;
    RETURN fallback;
END
$$;
