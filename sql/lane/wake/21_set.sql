    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END, updated_at = now()
