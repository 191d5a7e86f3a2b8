           -- Only with 21_set_times.sql: as apply/14_or_earlier.sql.
           OR e.sent < COALESCE(m.first_sent_at, 'infinity') OR e.delivered < COALESCE(m.first_delivered_at, 'infinity')
           OR e.opened < COALESCE(m.first_opened_at, 'infinity') OR e.clicked < COALESCE(m.first_clicked_at, 'infinity')
           OR COALESCE(e.gateway < m.first_gateway COLLATE "C", m.first_gateway IS NULL AND e.gateway IS NOT NULL)
