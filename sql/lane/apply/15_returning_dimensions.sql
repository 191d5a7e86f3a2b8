    -- In place of 15_returning_subscribed.sql where dimensions are counted (rules/dimensions.sql): with the message's values of them. Variables: dimension_1 to
    -- dimension_3, columns of the inbox; where there are fewer dimensions, the last one again.
    RETURNING e.n, e.signature, COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained, m.message_id AS id, COALESCE(m.org_id, '') AS org,
              record_link($19::bytea, ($12::int4[])[($9::int4[])[e.n]]) AS link, e.at,
              ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"] AS dims
