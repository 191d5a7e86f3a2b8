, moved AS MATERIALIZED (
    SELECT m.org, m.campaign, m.old, m.new, m.gained, m.columns::jsonb AS columns, m.n,
           timestamptz 'epoch' + m.first_us * interval '1 microsecond' AS first_at,
           timestamptz 'epoch' + m.last_us * interval '1 microsecond' AS last_at, m.link, m.entry
    FROM unnest($2::text[], $3::text[], $4::int2[], $5::int2[], $6::int4[], $7::text[], $8::int8[], $9::int8[], $10::int8[],
                $11::text[])
         WITH ORDINALITY AS m (org, campaign, old, new, gained, columns, n, first_us, last_us, link, entry)
),
-- What a transition means: statuses that its path entered (+1) and left (-1), flags that are new.
steps AS (
    SELECT k.old, k.new, k.gained, p.name, d.delta, false AS is_flag, p.code
    FROM (SELECT DISTINCT m.old, m.new, m.gained FROM moved m) k
    JOIN path_delta d ON d.old = k.old AND d.new = k.new
    JOIN message_status_priority p ON p.code = d.code
    UNION ALL
    SELECT k.old, k.new, k.gained, p.name, 1, true, p.code
    FROM (SELECT DISTINCT m.old, m.new, m.gained FROM moved m WHERE m.gained <> 0) k
    JOIN message_status_priority p ON p.flag_bit IS NOT NULL AND (k.gained >> p.flag_bit) & 1 = 1
),
meaning AS MATERIALIZED (
    SELECT s.old, s.new, s.gained, k.name AS status, o.name AS prev_status, s.names, s.deltas, s.entered, s.flags
    FROM (SELECT s.old, s.new, s.gained, array_agg(to_json(s.name)::text) AS names, array_agg(s.delta::int8) AS deltas,
                 COALESCE(array_agg(s.name) FILTER (WHERE s.delta > 0), '{}') AS entered,
                 COALESCE(array_agg(s.name ORDER BY s.code) FILTER (WHERE s.is_flag), '{}') AS flags
          FROM steps s
          GROUP BY s.old, s.new, s.gained) s
    JOIN message_status_priority k ON k.code = s.new
    LEFT JOIN message_status_priority o ON o.code = s.old
)
