-- How clean a gateway's receipts are, by the hour in which they were applied (counters.gateways). Column coverage:
-- the share of messages with a final status, among those that were sent in this hour or got their final status in it;
-- NULL without any. Below 1 receipts are missing, or come in a later hour. Delays: the end of the bucket in which the
-- median and the 99th percentile are, in ms.
CREATE OR REPLACE VIEW gateway_hour AS
WITH counted AS (
    SELECT t.key AS gateway, t.at AS hour, t.kind, t.status, t.messages, t.events
    FROM campaign_tally t
    WHERE t.campaign_id = '' AND t.kind LIKE 'gateway%' AND t.at IS NOT NULL
),
delays AS (
    SELECT d.gateway, d.hour, min(d.status) FILTER (WHERE d.below * 2 >= d.n) AS p50,
           min(d.status) FILTER (WHERE d.below * 100 >= d.n * 99) AS p99
    FROM (SELECT c.gateway, c.hour, c.status,
                 sum(c.events) OVER (PARTITION BY c.gateway, c.hour ORDER BY c.status) AS below,
                 sum(c.events) OVER (PARTITION BY c.gateway, c.hour) AS n
          FROM counted c WHERE c.kind = 'gateway_delay') d
    GROUP BY d.gateway, d.hour
)
SELECT c.gateway, c.hour, c.receipts, c.duplicates, c.disorder, c.won, c.lost, c.unknown, c.sent, c.final,
       round(GREATEST(c.final, 0) / NULLIF(GREATEST(c.sent, c.final, 0), 0), 4) AS coverage,
       round(power(2::numeric, d.p50 / 2.0)) AS delay_p50_ms, round(power(2::numeric, d.p99 / 2.0)) AS delay_p99_ms
FROM (
    SELECT g.gateway, g.hour,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway'), 0)::int8 AS receipts,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway_duplicate'), 0)::int8 AS duplicates,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway_disorder'), 0)::int8 AS disorder,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway_won'), 0)::int8 AS won,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway_lost'), 0)::int8 AS lost,
           COALESCE(sum(g.events) FILTER (WHERE g.kind = 'gateway_unknown'), 0)::int8 AS unknown,
           COALESCE(sum(g.messages) FILTER (WHERE g.kind = 'gateway_sent'), 0) AS sent,
           COALESCE(sum(g.messages) FILTER (WHERE g.kind = 'gateway_final'), 0) AS final
    FROM counted g
    GROUP BY g.gateway, g.hour
) c
LEFT JOIN delays d ON d.gateway = c.gateway AND d.hour = c.hour;
