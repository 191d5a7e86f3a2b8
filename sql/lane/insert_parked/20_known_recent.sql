    -- In place of 20_known.sql while the inbox has a recent set, as in insert/20_known_recent.sql.
    CROSS JOIN LATERAL (SELECT COALESCE((SELECT true FROM message_inbox m WHERE m.message_id = p.message_id AND m.:"recent_column" >= ALL (:'recent_since') LIMIT 1),
                                        (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id
                                                                           AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL) LIMIT 1)) AS known OFFSET 0) c
