    FROM placed e
    WHERE NOT e.known AND m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND m.:"recent_column" >= ALL (:'recent_since')
      AND (e.top > m.status OR (e.mask & ~m.flags) <> 0
