-- In place of 20_message.sql while the inbox has a recent set: by its index first; by the key for the messages that it
-- does not hold. A row is in one of the two at most: the second is not executed where the first has found the message.
LEFT JOIN LATERAL (
    SELECT r.* FROM (
        SELECT n.message_id, n.org_id, n.status, n.prev_status, n.flags, n.prev_flags, n.updated_at
        FROM message_inbox n WHERE n.message_id = e.id AND (COALESCE(e.org, '') = '' OR NULLIF(n.org_id, '') = e.org) AND n.:"recent_column" >= ALL (:'recent_since')
        UNION ALL
        SELECT o.message_id, o.org_id, o.status, o.prev_status, o.flags, o.prev_flags, o.updated_at
        FROM message_inbox o WHERE o.message_id = e.id AND (COALESCE(e.org, '') = '' OR NULLIF(o.org_id, '') = e.org) AND (o.:"recent_column" < ALL (:'recent_since') OR o.:"recent_column" IS NULL)
        LIMIT 1) r
) m ON true
