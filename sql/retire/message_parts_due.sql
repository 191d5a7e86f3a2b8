-- The parts that message_parts.sql would delete, for `receiptd retire --dry-run`. Returns rows and oldest.
SELECT count(*) AS rows, to_char(min(t.noted_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS oldest
FROM message_part t
WHERE (SELECT true FROM message_inbox m WHERE m.message_id = t.message_id LIMIT 1) IS NULL
  AND (SELECT true FROM inbox_detached d WHERE d.message_id = t.message_id LIMIT 1) IS NULL;
