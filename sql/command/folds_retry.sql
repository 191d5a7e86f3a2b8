-- Another chance for publications that were given up: parameters as for folds_list.sql. Their age begins again, since
-- max_age counts from the claim. A call that is not given up is left alone, so a second run does nothing. Returns id,
-- rule, error of each.
WITH again AS (
    SELECT c.id, c.error
    FROM fold_call c
    WHERE c.failed_at IS NOT NULL AND ($1::text IS NULL OR c.id = $1::text) AND ($2::text IS NULL OR c.rule = $2::text)
    ORDER BY c.failed_at, c.id
    LIMIT $3::int8
    FOR UPDATE
)
UPDATE fold_call c
SET failed_at = NULL, retry_at = now(), claimed_at = now(), wait_ms = 0
FROM again a
WHERE c.id = a.id
RETURNING c.id, c.rule, a.error;
