              -- Only with 11_set_times.sql: in which buckets the message counts now, and what it counted as before
              -- (time_place()).
              , time_bucket(m.first_sent_at, m.first_delivered_at) AS deliver, time_bucket(m.first_delivered_at, m.first_opened_at) AS open,
              m.first_gateway, m.prev_times AS was
