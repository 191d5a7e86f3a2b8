-- The histograms of times (counters.times) against the rows of message_time and what was booked as forgotten, in one snapshot. $1 text[] campaigns. The cells
-- that differ, as audit_dimension/90_list.sql has them: campaign_id, kind, key, status, status_name, rows, counter, drift.
SELECT c.campaign_id, c.kind, c.key, c.status, COALESCE(max(p.name), c.status::text) AS status_name, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter,
       (sum(c.counter) - sum(c.rows))::int8 AS drift
FROM (
    SELECT n.campaign AS campaign_id, n.kind, n.key, n.status, g.n AS rows, 0::int8 AS counter
    FROM (SELECT t.campaign_id, time_bucket(t.sent_at, t.delivered_at) AS deliver, time_bucket(t.delivered_at, t.opened_at) AS open, count(*) AS n
          FROM message_time t WHERE t.campaign_id = ANY ($1::text[]) GROUP BY 1, 2, 3) g
    CROSS JOIN LATERAL time_counts(g.campaign_id, NULL, g.deliver, g.open) n
    WHERE n.kind LIKE 'time\_%'
    UNION ALL
    SELECT t.campaign_id, replace(t.kind, 'forgotten_', ''), t.key, t.status,
           CASE WHEN t.kind LIKE 'forgotten\_%' THEN t.messages ELSE 0 END, CASE WHEN t.kind LIKE 'time\_%' THEN t.messages ELSE 0 END
    FROM campaign_tally t
    WHERE t.campaign_id = ANY ($1::text[]) AND t.kind IN ('time_to_deliver', 'time_to_open', 'forgotten_time_to_deliver', 'forgotten_time_to_open')
) c
LEFT JOIN message_status_priority p ON p.code = c.status
GROUP BY c.campaign_id, c.kind, c.key, c.status
HAVING sum(c.rows) <> sum(c.counter)
ORDER BY c.campaign_id, c.kind, c.key
