-- By which retired_message remembers an erased alias: ids of different accounts are different things. NULL where one of
-- them is.
CREATE OR REPLACE FUNCTION erased_alias_hash(account text, gateway_id text)
RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(account COLLATE "C" || E'\x1f' || gateway_id COLLATE "C", 0)
$$;
