-- The id of a publication: stable, so that a receiver can tell a repeated one.
CREATE OR REPLACE FUNCTION fold_id(rule text, key text, number bigint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN md5(rule || E'\n' || key) || '-' || number;
