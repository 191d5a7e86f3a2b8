-- Receipts by gateway in the last $1 int4 hours, the one that has just begun included. $2 bool: hour by hour, else
-- one row for each gateway. Percentages are of receipts that counted and duplicates together. The delays of one row
-- are the largest of its hours. Times to deliver (counters.times) are of all messages that were counted, whatever the
-- hours; NULL hour by hour.
SELECT COALESCE(NULLIF(g.gateway, ''), 'none') AS gateway,
       CASE WHEN $2::bool THEN to_char(g.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') END AS hour,
       sum(g.receipts) AS receipts, sum(g.duplicates) AS duplicates, sum(g.disorder) AS disorder,
       sum(g.won) AS contradictions_won, sum(g.lost) AS contradictions_lost, sum(g.unknown) AS unknown,
       round(GREATEST(sum(g.final), 0) / NULLIF(GREATEST(sum(g.sent), sum(g.final), 0), 0), 4) AS coverage,
       max(g.delay_p50_ms) AS delay_p50_ms, max(g.delay_p99_ms) AS delay_p99_ms,
       max(t.deliver_p50_ms) AS deliver_p50_ms, max(t.deliver_p99_ms) AS deliver_p99_ms
FROM gateway_hour g
LEFT JOIN gateway_time t ON t.gateway = g.gateway AND NOT $2::bool
WHERE g.hour > now() - $1::int4 * interval '1 hour' - interval '1 hour'
GROUP BY 1, 2
ORDER BY 2 DESC NULLS LAST, sum(g.receipts) DESC, 1;
