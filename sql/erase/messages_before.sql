-- Messages of a customer that were deleted before, as far as runs still know them. Returns id. Parameters: $1 text
-- the customer, $2 text the last id of the page before ('' at first), $3 int4 most rows, $4 text the column of
-- customers. It looks up each run by key: a join might read the whole inbox.
SELECT DISTINCT r.message_id AS id
FROM run r
WHERE r.message_id > $2::text AND erase_run_is_of(r, $1::text, $4::text)
  AND (SELECT true FROM message_inbox m WHERE m.message_id = r.message_id LIMIT 1) IS NULL
ORDER BY 1 LIMIT $3::int4;
