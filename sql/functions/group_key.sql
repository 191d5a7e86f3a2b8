-- The key of a message's group (counters.groups): a hash, so that the counted rows hold no id of a person. NULL: the
-- message is in no group. kind: customer or logical; salt: of group_salt; value: of the group's column; id: the
-- message's. Without a value, an attempt of a logical message is keyed by its own id. Further attempts have that id
-- as their value. A plain expression, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION group_key(salt bytea, kind text, campaign text, value text, id text)
RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT substr(sha256(salt || convert_to(
                      campaign || E'\x1f' || CASE WHEN kind = 'logical' THEN COALESCE(NULLIF(value, ''), id)
                                                  ELSE NULLIF(value, '') END, 'UTF8')), 1, 16)
$$;
