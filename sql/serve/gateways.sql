-- GET /gateways: $1 text organisation (figures of gateways belong to none: empty for it), $2 int4 hours. As receiptd
-- gateways shows them; times: of all messages that were counted (counters.times), whatever the hours.
SELECT json_build_object('hours', $2::int4, 'gateways', (SELECT COALESCE(json_agg(json_build_object(
    'gateway', g.gateway, 'hour', to_char(g.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'receipts', g.receipts, 'duplicates', g.duplicates, 'disorder', g.disorder,
    'contradictions_won', g.won, 'contradictions_lost', g.lost, 'unknown', g.unknown, 'coverage', g.coverage,
    'delay_p50_ms', g.delay_p50_ms, 'delay_p99_ms', g.delay_p99_ms)
    ORDER BY g.hour DESC, g.receipts DESC, g.gateway), '[]')
    FROM gateway_hour g WHERE $1::text IS NULL AND g.hour > now() - ($2::int4 + 1) * interval '1 hour'),
    'times', (SELECT COALESCE(json_agg(json_build_object(
        'gateway', t.gateway, 'messages', t.messages,
        'deliver_p50_ms', t.deliver_p50_ms, 'deliver_p99_ms', t.deliver_p99_ms)
        ORDER BY t.messages DESC, t.gateway), '[]')
        FROM gateway_time t WHERE $1::text IS NULL))::text AS body;
