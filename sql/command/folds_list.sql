-- Publications by webhook that were given up, the oldest first: $1 text id, $2 text rule (NULL: all), $3 int8 most.
-- Times are UTC; age is how long ago the publication was claimed, or tried again by an operator.
SELECT c.id, c.rule, c.attempts, date_trunc('second', now() - c.claimed_at)::text AS age,
       to_char(c.failed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS failed_at, c.error
FROM fold_call c
WHERE c.failed_at IS NOT NULL AND ($1::text IS NULL OR c.id = $1::text) AND ($2::text IS NULL OR c.rule = $2::text)
ORDER BY c.failed_at, c.id
LIMIT $3::int8;
