-- Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign and gateway. The UPDATE keeps a message's first times in its row
-- (../apply/11_set_times.sql), so neither the order of receipts nor copies change them. A time that gets earlier moves the message from one bucket to another: its
-- place before comes from the same UPDATE, never from a join (../apply/10_update.sql says why). The cells are those of time_counts(), added up by bucket before
-- their keys become text; where a message stays in its bucket they cancel out.
, moved AS MATERIALIZED (
    SELECT u.campaign, u.deliver, u.open, COALESCE(u.first_gateway, '') AS gateway, 1 AS n FROM u WHERE u.deliver IS NOT NULL OR u.open IS NOT NULL
    UNION ALL
    SELECT u.campaign, NULLIF(split_part(u.was, '/', 1), '')::int2, NULLIF(split_part(u.was, '/', 2), '')::int2,
           substr(u.was, length(split_part(u.was, '/', 1)) + length(split_part(u.was, '/', 2)) + 3), -1
    FROM u WHERE u.was IS NOT NULL
),
times AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT s.kind, array_agg(s.campaign), array_agg('-infinity'::timestamptz), array_agg(s.prefix || time_key(s.bucket)), array_agg(s.status), array_agg(s.n),
           array_agg(0::int8)
    FROM (SELECT 'time_to_deliver' AS kind, (SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED') AS status, m.campaign, '' AS prefix,
                 m.deliver AS bucket, sum(m.n) AS n
          FROM moved m WHERE m.deliver IS NOT NULL GROUP BY m.campaign, m.deliver
          UNION ALL
          SELECT 'gateway_time_to_deliver', (SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED'), '', m.gateway || '/', m.deliver, sum(m.n)
          FROM moved m WHERE m.deliver IS NOT NULL GROUP BY m.gateway, m.deliver
          UNION ALL
          SELECT 'time_to_open', (SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED'), m.campaign, '', m.open, sum(m.n)
          FROM moved m WHERE m.open IS NOT NULL GROUP BY m.campaign, m.open
          UNION ALL
          SELECT 'gateway_time_to_open', (SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED'), '', m.gateway || '/', m.open, sum(m.n)
          FROM moved m WHERE m.open IS NOT NULL GROUP BY m.gateway, m.open) s
    WHERE s.n <> 0
    GROUP BY s.kind
)
