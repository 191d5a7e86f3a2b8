    -- In place of 21_set.sql with first times: as apply/11_set_times.sql.
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END,
        updated_at = CASE WHEN e.top > m.status OR (e.mask & ~m.flags) <> 0 THEN now() ELSE m.updated_at END,
        first_sent_at = LEAST(m.first_sent_at, bounded_time(e.sent)), first_delivered_at = LEAST(m.first_delivered_at, bounded_time(e.delivered)),
        first_opened_at = LEAST(m.first_opened_at, bounded_time(e.opened)), first_clicked_at = LEAST(m.first_clicked_at, bounded_time(e.clicked)),
        first_gateway = LEAST(m.first_gateway COLLATE "C", e.gateway),
        prev_times = time_place(m.first_gateway, m.first_sent_at, m.first_delivered_at, m.first_opened_at)
