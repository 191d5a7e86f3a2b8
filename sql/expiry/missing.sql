-- Columns that rules of inbox.expiry name and the inbox does not have: $1 jsonb rules, as in candidates.sql. One row:
-- names (NULL: none).
SELECT string_agg(DISTINCT r."column", ', ') AS names
FROM jsonb_to_recordset($1::jsonb) AS r ("column" text)
WHERE r."column" IS NOT NULL
  AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass('message_inbox') AND a.attname = r."column"
                  AND a.attnum > 0 AND NOT a.attisdropped);
