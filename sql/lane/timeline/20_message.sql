LEFT JOIN message_inbox m ON m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
