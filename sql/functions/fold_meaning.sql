-- The meaning of a transition of a path and flags for folds. No row where it means nothing. names (JSON texts) with
-- deltas: statuses that its path entered with +1 or left with −1, and new flags with +1. entered, flags: the statuses
-- entered, the flags gained. A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION fold_meaning(old_code int2, new_code int2, gained_flags int4)
RETURNS TABLE (status text, prev_status text, names text[], deltas int8[], entered text[], flags text[])
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT k.name, o.name, s.names, s.deltas, s.entered, s.flags
    FROM (SELECT array_agg(to_json(s.name)::text) AS names, array_agg(s.delta::int8) AS deltas,
                 COALESCE(array_agg(s.name) FILTER (WHERE s.delta > 0), '{}') AS entered,
                 COALESCE(array_agg(s.name ORDER BY s.code) FILTER (WHERE s.is_flag), '{}') AS flags
          FROM (SELECT p.name, d.delta, p.flag_bit IS NOT NULL AS is_flag, p.code
                FROM transition_codes(old_code, new_code, gained_flags) d
                JOIN message_status_priority p ON p.code = d.code) s
          HAVING count(*) > 0) s
    JOIN message_status_priority k ON k.code = new_code
    LEFT JOIN message_status_priority o ON o.code = old_code
$$;
