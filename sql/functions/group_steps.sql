-- The counts that a change of a group adds to its counters, as transition_codes() of a message, also from no status
-- (NULL). was, had: status and flags before. A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION group_steps(was int2, had int4, status int2, flags int4)
RETURNS TABLE (code int2, delta int4) LANGUAGE sql STABLE ROWS 3 AS $$
    SELECT s.code, sum(s.delta)::int4
    FROM (SELECT a.ancestor AS code, 1 AS delta FROM status_path a WHERE a.code = status
          UNION ALL SELECT a.ancestor, -1 FROM status_path a WHERE a.code = was) s
    GROUP BY s.code HAVING sum(s.delta) <> 0
    UNION ALL
    SELECT (9001 + b.bit)::int2, 1
    FROM generate_series(0, 30) AS b (bit)
    WHERE ((flags & ~COALESCE(had, 0)) >> b.bit) & 1 = 1
$$;
