    FROM placed e
    LEFT JOIN message_inbox m ON m.message_id = e.id AND m.:"recent_column" >= ALL (:'recent_since')
    WHERE NOT e.known AND e.n NOT IN (SELECT c.n FROM recent c)
),
older AS (
    UPDATE message_inbox m
