    FROM seen e
    WHERE NOT e.known AND m.message_id = e.id AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL)
      AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND (e.top > m.status OR (e.mask & ~m.flags) <> 0
