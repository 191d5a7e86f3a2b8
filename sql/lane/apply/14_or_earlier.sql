           -- Only with 11_set_times.sql: or a first time is new or earlier, or the gateway is. Also of what an UPDATE
           -- that waited did not change (25_unchanged.sql): where the message was deleted meanwhile, its receipt is
           -- late, or the time would be missing in what the deletion has booked.
           OR ($38::timestamptz[])[e.n * 4 - 3] < COALESCE(m.first_sent_at, 'infinity') OR ($38::timestamptz[])[e.n * 4 - 2] < COALESCE(m.first_delivered_at, 'infinity')
           OR ($38::timestamptz[])[e.n * 4 - 1] < COALESCE(m.first_opened_at, 'infinity') OR ($38::timestamptz[])[e.n * 4] < COALESCE(m.first_clicked_at, 'infinity')
           OR COALESCE(($30::text[])[($39::int4[])[e.n]] < m.first_gateway COLLATE "C", m.first_gateway IS NULL AND ($30::text[])[($39::int4[])[e.n]] IS NOT NULL)
