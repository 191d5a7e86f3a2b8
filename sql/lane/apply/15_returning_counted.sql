              -- Only with 11_set_counted.sql: the keys that the row had, as the UPDATE itself saw it; NULL: no receipt
              -- of the message can have come before.
              , CASE WHEN ($40::int2[])[e.n] > m.prev_status THEN NULL ELSE COALESCE(m.:"counted", '') END AS counted
