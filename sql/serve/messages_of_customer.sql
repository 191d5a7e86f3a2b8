-- GET /messages?customer=: $1 text organisation (NULL: all), $2 text q (NULL here), $3 the customer's id, of the
-- column's own type. Newest first. Variables: customer (inbox.columns.customer_id), newest (created_at, or message_id
-- where the table has no such column).
WITH page AS (
    SELECT m.message_id, m.campaign_id, m.org_id, m.status, m.status_at,
           row_number() OVER (ORDER BY m.:"newest" DESC, m.message_id DESC) AS n
    FROM message_inbox m
    WHERE m.:"customer" = $3 AND ($1::text IS NULL OR m.org_id = $1::text) AND $2::text IS NULL
    ORDER BY m.:"newest" DESC, m.message_id DESC
    LIMIT 100
)
SELECT json_build_object('messages', COALESCE(json_agg(json_build_object(
    'message_id', p.message_id, 'campaign_id', p.campaign_id,
    'org_id', p.org_id, 'status', COALESCE(s.name, p.status::text),
    'status_at', to_char(p.status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'found_by', 'customer')
    ORDER BY p.n), '[]'))::text AS body
FROM page p
LEFT JOIN message_status_priority s ON s.code = p.status;
