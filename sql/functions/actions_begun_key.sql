-- By which run_begun knows that a pipeline has begun a run for a message: two hashes, so that no two pairs have the
-- same. A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION actions_begun_key(pipeline text, org text, message text)
RETURNS TABLE (first int8, second int8) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(k.key COLLATE "C", 0), hashtextextended(k.key COLLATE "C", 1)
    FROM (SELECT pipeline || E'\x1f' || org || E'\x1f' || message AS key) k
$$;
