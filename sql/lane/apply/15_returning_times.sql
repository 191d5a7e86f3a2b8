              -- Only with 11_set_times.sql: what the message counts as in the histograms, and before.
              , time_place(m.first_gateway, m.first_sent_at, m.first_delivered_at, m.first_opened_at) AS place, m.prev_times AS was
