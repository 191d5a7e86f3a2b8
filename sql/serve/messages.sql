-- GET /messages: $1 text organisation (NULL: all), $2 text id of the message, or the one that a gateway gave it, $3
-- text customer (NULL here: that is messages_of_customer.sql). Look-ups by key: accounts are found one after the other
-- by the index of their aliases.
WITH RECURSIVE account (name) AS (
    (SELECT a.channel_account FROM message_alias a ORDER BY a.channel_account LIMIT 1)
    UNION ALL
    SELECT (SELECT a.channel_account
            FROM message_alias a
            WHERE a.channel_account > c.name
            ORDER BY a.channel_account
            LIMIT 1)
    FROM account c WHERE c.name IS NOT NULL
),
found (message_id, found_by) AS (
    SELECT $2::text, 'id'
    UNION ALL
    SELECT a.message_id COLLATE "default", 'alias of ' || c.name
    FROM account c JOIN message_alias a ON a.channel_account = c.name AND a.gateway_id = $2::text
)
SELECT json_build_object('messages', COALESCE(json_agg(json_build_object(
    'message_id', m.message_id, 'campaign_id', m.campaign_id,
    'org_id', m.org_id, 'status', COALESCE(s.name, m.status::text),
    'status_at', to_char(m.status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'found_by', f.found_by)
    ORDER BY f.found_by, m.message_id), '[]'))::text AS body
FROM found f
JOIN message_inbox m ON m.message_id = f.message_id
LEFT JOIN message_status_priority s ON s.code = m.status
WHERE ($1::text IS NULL OR m.org_id = $1::text) AND $3::text IS NULL;
