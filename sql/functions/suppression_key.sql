-- By what a suppressed person is looked up: a hash, so that it may stay after an erasure. Texts hold no NUL, so no two
-- pairs run together.
CREATE OR REPLACE FUNCTION suppression_key(org text, person text)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(org, 'UTF8') || '\x00' || convert_to(person, 'UTF8'))
$$;
