-- Recount of one campaign against its counters, in one statement, hence one snapshot: $1 text campaign ('': messages
-- without one). One row per status: status, status_name, counted (messages on whose path it is, or with the flag),
-- expected (the counter), drift = expected - counted; all statuses, also where the drift is 0.
-- $2 bool: TARGETED (the root) is counted by us; false with inbox.targeted = none, then its row is left out.
SELECT s.status, COALESCE(k.name, s.status::text) AS status_name, s.counted, s.expected, s.expected - s.counted AS drift
FROM campaign_recount($1::text, $2::bool) s
LEFT JOIN message_status_priority k ON k.code = s.status
ORDER BY s.status;
