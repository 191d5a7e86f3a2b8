-- The key under which a message counts in a dimension (src/core/rules/dimensions.c). It is the value of its column,
-- '' where that is NULL, 'other' where it is longer than a key may be. A plain expression, so that it becomes part of
-- the statement that asks.
CREATE OR REPLACE FUNCTION dimension_key(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(value) > 100 THEN 'other' ELSE COALESCE(value, '') END
$$;
