-- A key of once_per, short enough for an index.
CREATE OR REPLACE FUNCTION action_once_key(key text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(key) <= 1000 THEN key ELSE encode(sha256(convert_to(key, 'UTF8')), 'hex') END
$$;
