-- The counts of a transition of a path and flags: each status that its path enters (1) or leaves (-1), each flag that
-- is gained (1). A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION transition_codes(old_code int2, new_code int2, gained_flags int4)
RETURNS TABLE (code int2, delta int4) LANGUAGE sql STABLE ROWS 3 AS $$
    SELECT d.code, d.delta::int4 FROM path_delta d WHERE d.old = old_code AND d.new = new_code
    UNION ALL
    SELECT (9001 + b.bit)::int2, 1
    FROM generate_series(0, 30) AS b (bit)
    WHERE gained_flags <> 0 AND (gained_flags >> b.bit) & 1 = 1
$$;
