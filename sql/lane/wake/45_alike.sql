-- What apply/45_alike.sql gives, one by one, since few are woken, and the cells of minutes, which the delta of a wake
-- does not say (bounded as in apply/31_delta_minutes.sql).
, minute_cells AS MATERIALIZED (
    SELECT s.campaign, bounded_minute(floor(date_part('epoch', s.at) / 60)::int8) AS minute, s.code, sum(s.messages) AS messages, sum(s.events) AS events
    FROM (SELECT u.campaign, u.at, d.code, d.delta AS messages, 0 AS events FROM u JOIN steps d ON d.old = u.old AND d.new = u.new AND d.gained = u.gained
          UNION ALL
          SELECT c.campaign, c.at, k.code, 0, 1 FROM receipts c CROSS JOIN LATERAL receipt_codes(c.code, c.flags) k) s
    GROUP BY 1, 2, 3
),
gateway_receipts AS (SELECT c.gateway, c.code, c.old, 1 AS n FROM receipts c),
gateway_messages AS (
    SELECT (SELECT min(c.gateway COLLATE "C") FROM receipts c WHERE c.id = u.id) AS gateway, u.old, u.new, 1 AS n FROM u WHERE u.old <> u.new
),
reason_receipts AS (SELECT c.campaign, c.gateway, c.reason, c.code, 1 AS n FROM receipts c WHERE c.reason IS NOT NULL),
delays AS (SELECT c.gateway, c.bucket, 1 AS n FROM receipts c)
