    RETURNING e.n, e.signature, COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained
