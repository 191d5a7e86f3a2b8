-- What an open or click counts as that a machine made, by the policy for it (1 flag, 2 count, 3 ignore): status and the
-- flags beside it, as rcpt_machine_apply() of src/core/machine.c says for receipts whose gateway has told. `named` and
-- `flags` are what the receipt names. 4 flag and 5 ignore: of a click beside whose flag MACHINE_OPEN the open counts,
-- so that it stays when the click goes.
CREATE OR REPLACE FUNCTION machine_codes(named int2, flags int4, policy int2) RETURNS TABLE (status int2, beside int4) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT CASE WHEN policy = 2 THEN named WHEN policy > 3 THEN (SELECT o.code FROM message_status_priority o WHERE o.name = 'OPENED')
                WHEN a.flags = 0 THEN a.implies ELSE (9001 + a.first)::int2 END,
           CASE WHEN policy = 2 OR policy > 3 THEN a.flags WHEN a.flags = 0 THEN 0 ELSE a.flags & ~(1 << a.first) END
    FROM (SELECT f.implies, m.flags, (SELECT min(b) FROM generate_series(0, 30) b WHERE (m.flags >> b) & 1 = 1) AS first
          FROM message_status_priority k
          JOIN message_status_priority f ON f.name = CASE k.name WHEN 'OPENED' THEN 'MACHINE_OPEN' WHEN 'CLICKED' THEN 'BOT_CLICK' END
          CROSS JOIN LATERAL (SELECT machine_codes.flags | CASE WHEN policy IN (3, 5) THEN 0 ELSE 1 << f.flag_bit END AS flags) m
          WHERE k.code = named) a
$$;
