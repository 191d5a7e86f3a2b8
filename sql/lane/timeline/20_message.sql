LEFT JOIN message_inbox m ON m.message_id = e.id AND (COALESCE(e.org, '') = '' OR NULLIF(m.org_id, '') = e.org)
