-- Where a push has a subject: a number in [0, 1), the same at any time and in any database. Subjects are dealt in its
-- order, which has nothing to do with the order of a list.
CREATE OR REPLACE FUNCTION push_place(push text, subject text) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ((hashtextextended(push || E'\x1f' || subject, 40) >> 11) & 9007199254740991)::float8 / 9007199254740992
$$;
