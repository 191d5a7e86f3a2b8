    -- In place of 20_changed.sql where folds or pipelines subscribe to transitions (subscribers/*.sql), or rules count (rules/*.sql): with the columns that they read.
    -- Without subscribers and rules, the statement computes none of them.
    RETURNING e.n, e.signature, COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained, m.message_id AS id, COALESCE(m.org_id, '') AS org,
              record_link($19::bytea, ($12::int4[])[($9::int4[])[e.n]]) AS link, e.at
