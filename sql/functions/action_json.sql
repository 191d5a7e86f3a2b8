-- The JSON of a text, NULL where it is none that can be kept (\u0000, too deep).
CREATE OR REPLACE FUNCTION action_json(value text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END
$$;
