-- Whether a message of that path has been at the status, or has the flag. Without a message: no. A plain expression, so
-- that it becomes part of the query that asks: a call for each row would cost more than everything else about a
-- decision.
CREATE OR REPLACE FUNCTION action_reached(path int2[], flags int4, code int2)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN code >= 9001 THEN COALESCE((flags >> (code - 9001)) & 1 = 1, false)
                ELSE COALESCE(code = ANY (path), false) END
$$;
