-- Webhooks that are due, claimed for an attempt. $1 int4 shard, $2 int4 most, $3 int8 lease in ms: without an answer by
-- then it is due again. Returns id, rule, payload, wait_ms (the last one), age_ms, given_up (why it had been, where it
-- has got another chance; NULL: it had not).
WITH due AS MATERIALIZED (
    SELECT c.id, c.retry_at FROM fold_call c
    WHERE c.lane = $1::int4 AND c.failed_at IS NULL AND c.retry_at <= now()
    ORDER BY c.retry_at LIMIT $2::int4
)
UPDATE fold_call c
SET retry_at = now() + $3::int8 * interval '1 millisecond', attempts = c.attempts + 1
FROM due d
WHERE c.id = d.id AND c.retry_at = d.retry_at
RETURNING c.id, c.rule, c.payload, c.wait_ms, (extract(epoch FROM now() - c.claimed_at) * 1000)::int8 AS age_ms,
          CASE WHEN c.wait_ms = 0 THEN c.error END AS given_up;
