-- Detail of a dead letter: the problem (NULL: nothing to say), and that its payload was cut, with its size in bytes.
-- The redrive (dead_letters_for_redrive.sql) recognises a cut letter by these words at the end.
CREATE OR REPLACE FUNCTION letter_detail(what text, size int4) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT NULLIF(concat_ws('; ', what, CASE WHEN size > 65536 THEN format('the first of %s bytes', size) END), '')
$$;
