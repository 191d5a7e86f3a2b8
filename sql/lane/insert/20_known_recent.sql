    -- In place of 20_known.sql while the inbox has a recent set: by its index first, and by the key only where that
    -- finds nothing.
    WHERE COALESCE((SELECT true FROM message_inbox m WHERE m.message_id = w.message_id AND m.:"recent_column" >= ALL (:'recent_since') LIMIT 1),
                   (SELECT true FROM message_inbox m WHERE m.message_id = w.message_id
                                                        AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL) LIMIT 1)) IS NULL
