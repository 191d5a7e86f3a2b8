-- Messages of a customer that were deleted before, as far as runs still know them: $1 text the customer, $2 text the
-- last id of the page before ('' at first), $3 int4 most rows, $4 text the column of customers. Returns id.
SELECT DISTINCT r.message_id AS id
FROM run r
WHERE r.message_id > $2::text AND erase_run_is_of(r, $1::text, $4::text)
  AND NOT EXISTS (SELECT FROM message_inbox m WHERE m.message_id = r.message_id)
ORDER BY 1 LIMIT $3::int4;
