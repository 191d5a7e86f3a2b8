-- The messages that ?pending=true adds to a funnel. It reads each message of the campaign, but none of another
-- organisation's. Parameters: $1 text organisation (NULL: all), $2 text campaign, $3 text rules of inbox.expiry, as
-- sql/expiry/pending.sql has them. The campaign has an id, so the index on that serves. The statement is this file,
-- 20_column.sql for each column that a rule names, and 30_end.sql: the role of `serve` may read no other column.
SELECT json_build_object('messages', count(*),
                         'until', to_char(max(e.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))::text AS body
FROM message_inbox m
CROSS JOIN LATERAL (
    SELECT r.*
    FROM jsonb_to_recordset($3::text::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
    WHERE r."column" IS NULL
