-- The aliases that aliases.sql would delete, for `receiptd retire --dry-run`: $1 int8 ms. Returns rows and oldest.
SELECT count(*) AS rows, to_char(min(t.created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS oldest
FROM message_alias t CROSS JOIN LATERAL (SELECT t.message_id COLLATE "default" AS id) k
WHERE t.created_at < now() - $1::int8 * interval '1 millisecond'
  AND (SELECT true FROM message_inbox m WHERE m.message_id = k.id LIMIT 1) IS NULL
  AND (SELECT true FROM inbox_detached d WHERE d.message_id = t.message_id) IS NULL
  AND (SELECT true FROM retired_message r WHERE r.hash = hashtextextended(t.message_id, 0) LIMIT 1) IS NULL
  AND (SELECT true
       FROM message_alias n
       WHERE n.channel_account = t.channel_account AND n.gateway_id = t.message_id) IS NULL;
