    FROM (SELECT DISTINCT ON (d.n) d.* FROM seen d WHERE NOT d.known ORDER BY d.n) e
    LEFT JOIN message_inbox m ON m.message_id = e.id AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL)
    CROSS JOIN LATERAL (SELECT CASE WHEN m.message_id IS NULL THEN e.owner ELSE m.org_id END AS org) o
    WHERE e.n NOT IN (SELECT c.n FROM older c)
),
