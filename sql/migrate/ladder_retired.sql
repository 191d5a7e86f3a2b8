-- The status, flags and number of retired messages, for ladder_check.sql: status, flags and messages as arrays.
SELECT array_agg(r.status) AS status, array_agg(r.flags) AS flags, array_agg(r.n) AS messages
FROM (SELECT status, flags, sum(messages)::int8 AS n FROM campaign_retired GROUP BY status, flags) r;
