    RETURNING COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained, m.message_id AS id, COALESCE(m.org_id, '') AS org, e.link, e.at
