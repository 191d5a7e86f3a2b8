-- Recount of one campaign against its counters, in one statement, hence one snapshot: $1 text campaign ('': messages
-- without one). One row per status: status, status_name, rows (messages on whose path it is, or with the flag),
-- counter, drift = counter - rows; all statuses, also where the drift is 0. $2 bool: TARGETED (the root) is counted by
-- us; false with inbox.targeted = none, then its row is left out.
SELECT s.status, COALESCE(k.name, s.status::text) AS status_name, s.rows, s.counter, s.counter - s.rows AS drift
FROM campaign_recount(ARRAY[$1::text], $2::bool) s
LEFT JOIN message_status_priority k ON k.code = s.status
ORDER BY s.status;
