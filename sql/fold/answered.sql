-- The result of an attempt. $1 text id, $2 text: delivered, again or dead; $3 int8 wait in ms, $4 text error.
WITH delivered AS (
    DELETE FROM fold_call c WHERE c.id = $1::text AND $2::text = 'delivered'
)
UPDATE fold_call c
SET wait_ms = $3::int8, retry_at = now() + $3::int8 * interval '1 millisecond', error = $4::text,
    failed_at = CASE WHEN $2::text = 'dead' THEN now() END
WHERE c.id = $1::text AND $2::text <> 'delivered';
