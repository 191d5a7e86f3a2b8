    RETURNING e.n, e.signature, ($25::int4[])[e.n] AS kind, COALESCE(m.campaign_id, '') AS campaign,
              m.prev_status AS old, m.status AS new, m.flags & ~m.prev_flags AS gained
