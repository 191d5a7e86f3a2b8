    WHERE (SELECT true FROM message_inbox m WHERE m.message_id = w.message_id LIMIT 1) IS NULL
