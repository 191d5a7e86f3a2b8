-- Hash of a subject within its organisation; it selects the shard and keeps two actions of a subject apart.
CREATE OR REPLACE FUNCTION action_subject_hash(org text, subject text)
RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(org || E'\x1f' || subject, 0)
$$;
