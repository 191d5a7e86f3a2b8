-- Tells whether a value of a fold is one of these ids: as a string, as a number, or within a string that holds JSON,
-- perhaps cut. A fold keeps objects and arrays as such strings. numbers: those of the ids that are numbers.
CREATE OR REPLACE FUNCTION erase_scalar(value jsonb, ids text[], numbers numeric[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    said text := value #>> '{}';
BEGIN
    IF jsonb_typeof(value) = 'number' THEN
        RETURN value::numeric = ANY (numbers);
    ELSIF jsonb_typeof(value) <> 'string' THEN
        RETURN false;
    END IF;
    RETURN said = ANY (ids) OR (said ~ '^\s*[[{]' AND EXISTS (
        SELECT FROM regexp_matches(said, '("(?:[^"\\]|\\.)*"|-?[0-9][-+.0-9eE]*)', 'g') AS t (token)
        WHERE erase_scalar(action_json(t.token[1]), ids, numbers)));
END
$$;
