-- Recounts one campaign and compares its counters, in one statement, hence one snapshot. Parameters: $1 text campaign
-- ('': messages without one), $2 bool: we count TARGETED, the root. With inbox.targeted = none it is false, and the
-- root's row is left out. One row per status, also where the drift is 0: status, status_name, rows (messages on whose
-- path it is, or with the flag), counter, drift = counter - rows.
SELECT s.status, COALESCE(k.name, s.status::text) AS status_name, s.rows, s.counter, s.counter - s.rows AS drift
FROM campaign_recount(ARRAY[$1::text], $2::bool) s
LEFT JOIN message_status_priority k ON k.code = s.status
ORDER BY s.status;
