    -- In place of 11_set.sql with first times (counters.times), the least event times of receipts that name a status,
    -- an hour ahead of this server at most. A time may become known or earlier where nothing else changes. That is no
    -- transition: updated_at stays. prev_times: what the message counted as in the histograms.
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END,
        updated_at = CASE WHEN e.top > m.status OR (e.mask & ~m.flags) <> 0 THEN now() ELSE m.updated_at END,
        first_sent_at = LEAST(m.first_sent_at, bounded_time(($38::timestamptz[])[e.n * 4 - 3])),
        first_delivered_at = LEAST(m.first_delivered_at, bounded_time(($38::timestamptz[])[e.n * 4 - 2])),
        first_opened_at = LEAST(m.first_opened_at, bounded_time(($38::timestamptz[])[e.n * 4 - 1])),
        first_clicked_at = LEAST(m.first_clicked_at, bounded_time(($38::timestamptz[])[e.n * 4])),
        first_gateway = LEAST(m.first_gateway COLLATE "C", ($30::text[])[($39::int4[])[e.n]]),
        prev_times = time_place(m.first_gateway, m.first_sent_at, m.first_delivered_at, m.first_opened_at)
