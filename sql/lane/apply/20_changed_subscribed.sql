    -- In place of 20_changed.sql where folds or pipelines subscribe to transitions (subscribers/*.sql): with the columns that they read.
    -- Where nobody does, nothing of this is computed.
    RETURNING e.n, e.signature, COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained, m.message_id AS id, COALESCE(m.org_id, '') AS org, m.status_at AS at,
              -- The record's traceparent. All of them stand in one piece, of 55 bytes each: an array of texts would be walked for each.
              NULLIF(rtrim(convert_from(substr((
                  SELECT convert_to(string_agg(rpad(COALESCE(w.link, ''), 55), '' ORDER BY w.n), 'UTF8')
                  FROM unnest($19::text[]) WITH ORDINALITY AS w (link, n)
                  HAVING count(w.link) > 0
              ), 55 * (($12::int4[])[($9::int4[])[e.n]] - 1) + 1, 55), 'UTF8')), '') AS link
),
changed AS MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained, u.signature, count(*)::int4 AS n, u.org, min(u.link COLLATE "C") AS link
    FROM u
    GROUP BY u.campaign, u.old, u.new, u.gained, u.signature, u.org
)
