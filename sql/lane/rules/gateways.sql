-- Rule: how clean a gateway's receipts are, by the hour in which they were applied: by status, duplicates, receipts out
-- of order (of a stage that the message had passed), contradictions (of another branch than the message's; won: the
-- larger code is the new one), of unknown messages, and how long they took from their event time, as logarithmic
-- buckets: bucket b ends at 2^(b/2) ms. And how many messages were sent, and how many of these got a final status: one
-- that leaves it again is taken off, so it counts once.
, gateway_codes AS MATERIALIZED (
    SELECT COALESCE(c.gateway, '') AS gateway, c.code, c.old, sum(c.n) AS n
    FROM (SELECT g.gateway, g.code, g.old, g.n FROM gateway_receipts g UNION ALL SELECT e.gateway, e.code, e.old, -1 FROM echoed e) c
    GROUP BY 1, 2, 3
),
gateway_counts AS (
    SELECT 'gateway' AS kind, g.gateway, g.code AS status, g.n FROM gateway_codes g
    UNION ALL SELECT 'gateway_duplicate', COALESCE(e.gateway, ''), e.code, e.n FROM echoes e
    UNION ALL SELECT 'gateway_unknown', COALESCE(m.gateway, ''), 0::int2, m.n FROM missed m
    UNION ALL
    SELECT CASE WHEN p.late THEN 'gateway_disorder' WHEN g.code > g.old THEN 'gateway_won' ELSE 'gateway_lost' END, g.gateway, g.code, g.n
    FROM gateway_codes g
    CROSS JOIN LATERAL (SELECT g.code < g.old AND EXISTS (SELECT FROM status_path s WHERE s.code = g.old AND s.ancestor = g.code) AS late,
                               EXISTS (SELECT FROM status_path s WHERE s.code = g.code AND s.ancestor = g.old) AS on_path) p
    WHERE g.code < 9001 AND g.code <> g.old AND NOT p.on_path
    UNION ALL
    SELECT 'gateway_delay', COALESCE(d.gateway, ''), d.bucket, d.n FROM delays d
    UNION ALL SELECT 'gateway_delay', COALESCE(e.gateway, ''), e.bucket, -1 FROM echoed e
),
gateway_stages AS MATERIALIZED (
    SELECT a.code, bool_or(p.name = 'SENT') AS sent, bool_or(p.name = 'SENT') AND bool_or(p.terminal OR p.name = 'DELIVERED') AS final
    FROM status_path a JOIN message_status_priority p ON p.code = a.ancestor
    WHERE a.code IN (SELECT m.old FROM gateway_messages m UNION SELECT m.new FROM gateway_messages m) GROUP BY a.code
),
gateway_moves AS (
    SELECT c.kind, COALESCE(m.gateway, '') AS gateway, sum(c.delta * m.n)::int8 AS n
    FROM gateway_messages m JOIN gateway_stages o ON o.code = m.old JOIN gateway_stages s ON s.code = m.new
    CROSS JOIN LATERAL (VALUES ('gateway_sent', s.sent::int4 - o.sent::int4), ('gateway_final', s.final::int4 - o.final::int4)) c (kind, delta)
    GROUP BY 1, 2 HAVING sum(c.delta * m.n) <> 0
),
gateways AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT g.kind, array_agg(''::text), array_agg(date_trunc('hour', now(), 'UTC')), array_agg(g.gateway), array_agg(g.status), array_agg(g.messages), array_agg(g.n)
    FROM (SELECT g.kind, g.gateway, g.status, 0::int8 AS messages, sum(g.n)::int8 AS n FROM gateway_counts g GROUP BY 1, 2, 3 HAVING sum(g.n) <> 0
          UNION ALL SELECT m.kind, m.gateway, 0::int2, m.n, 0 FROM gateway_moves m) g
    GROUP BY g.kind
)
