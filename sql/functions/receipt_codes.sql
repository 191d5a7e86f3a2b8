-- The codes that a receipt names: its own status or flag, and the flags beside it; each with what it makes of a
-- message. A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION receipt_codes(own int2, beside int4)
RETURNS TABLE (code int2, top int2, mask int4) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT own, COALESCE(CASE WHEN s.flag_bit IS NULL THEN s.code ELSE s.implies END, 0::int2),
           CASE WHEN s.flag_bit IS NULL THEN 0 ELSE 1 << s.flag_bit END
    FROM (SELECT) one LEFT JOIN message_status_priority s ON s.code = own
    UNION ALL
    SELECT s.code, COALESCE(s.implies, 0::int2), 1 << s.flag_bit
    FROM message_status_priority s
    WHERE beside <> 0 AND s.flag_bit IS NOT NULL AND (beside >> s.flag_bit) & 1 = 1
$$;
