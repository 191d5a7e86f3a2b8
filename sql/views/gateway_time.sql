-- How long gateways took from SENT to DELIVERED (counters.times), over all messages that were counted. Columns: how
-- many these are, and the end of the bucket in which the median and the 99th percentile are, in ms. NULL: it is among
-- messages that were delivered before they were sent, by the gateway's clocks.
CREATE OR REPLACE VIEW gateway_time AS
SELECT b.gateway, max(b.n)::int8 AS messages,
       NULLIF(min(b."end") FILTER (WHERE b.below * 2 >= b.n), -1) AS deliver_p50_ms,
       NULLIF(min(b."end") FILTER (WHERE b.below * 100 >= b.n * 99), -1) AS deliver_p99_ms
FROM (SELECT c.gateway, c."end", sum(c.messages) OVER (PARTITION BY c.gateway ORDER BY c."end") AS below,
             sum(c.messages) OVER (PARTITION BY c.gateway) AS n
      FROM (SELECT substring(t.key FROM '^(.*)/[^/]*$') AS gateway, t.messages,
                   CASE substring(t.key FROM '[^/]*$') WHEN 'negative' THEN -1
                        ELSE substring(t.key FROM '[^/]*$')::int8 END AS "end"
            FROM campaign_tally t WHERE t.campaign_id = '' AND t.kind = 'gateway_time_to_deliver') c) b
GROUP BY b.gateway;
