    CROSS JOIN LATERAL (SELECT (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id LIMIT 1) AS known OFFSET 0) c
