-- Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign and gateway. The UPDATE keeps a message's first times in its row
-- (../apply/11_set_times.sql), so neither the order of receipts nor copies change them. A time that gets earlier moves the message from one bucket to another: its
-- place before comes from the same UPDATE, never from a join (../apply/10_update.sql says why). The cells are those of time_counts(), added up by bucket before
-- their keys become text.
, moved AS MATERIALIZED (
    SELECT p.campaign, NULLIF(split_part(p.place, '/', 1), '')::int2 AS deliver, NULLIF(split_part(p.place, '/', 2), '')::int2 AS open,
           substr(p.place, length(split_part(p.place, '/', 1)) + length(split_part(p.place, '/', 2)) + 3) AS gateway, p.n
    FROM (SELECT u.campaign, u.place, count(*)::int4 AS n FROM u WHERE u.place IS DISTINCT FROM u.was AND u.place IS NOT NULL GROUP BY 1, 2
          UNION ALL
          SELECT u.campaign, u.was, -count(*)::int4 FROM u WHERE u.place IS DISTINCT FROM u.was AND u.was IS NOT NULL GROUP BY 1, 2) p
),
times AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT s.kind, array_agg(s.campaign), array_agg('-infinity'::timestamptz), array_agg(s.prefix || time_key(s.bucket)), array_agg(p.code), array_agg(s.n),
           array_agg(0::int8)
    FROM (SELECT 'time_to_deliver' AS kind, 'DELIVERED' AS status, m.campaign, '' AS prefix, m.deliver AS bucket, sum(m.n) AS n
          FROM moved m WHERE m.deliver IS NOT NULL GROUP BY m.campaign, m.deliver
          UNION ALL
          SELECT 'gateway_time_to_deliver', 'DELIVERED', '', m.gateway || '/', m.deliver, sum(m.n) FROM moved m WHERE m.deliver IS NOT NULL GROUP BY m.gateway, m.deliver
          UNION ALL
          SELECT 'time_to_open', 'OPENED', m.campaign, '', m.open, sum(m.n) FROM moved m WHERE m.open IS NOT NULL GROUP BY m.campaign, m.open
          UNION ALL
          SELECT 'gateway_time_to_open', 'OPENED', '', m.gateway || '/', m.open, sum(m.n) FROM moved m WHERE m.open IS NOT NULL GROUP BY m.gateway, m.open) s
    JOIN message_status_priority p ON p.name = s.status
    WHERE s.n <> 0
    GROUP BY s.kind
)
