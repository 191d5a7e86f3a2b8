-- An object of scalars, the key of a group or columns of the inbox, in which each value that is one of these ids
-- (erase_scalar()) is null.
CREATE OR REPLACE FUNCTION erase_object(object jsonb, ids text[], numbers numeric[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT COALESCE(
        jsonb_object_agg(m.key, CASE WHEN erase_scalar(m.value, ids, numbers) THEN 'null' ELSE m.value END), '{}')
    FROM jsonb_each(object) m
$$;
