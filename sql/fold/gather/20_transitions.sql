, moved AS MATERIALIZED (
    SELECT m.org, m.campaign, m.old, m.new, m.gained, m.columns::jsonb AS columns, m.n,
           timestamptz 'epoch' + m.first_us * interval '1 microsecond' AS first_at,
           timestamptz 'epoch' + m.last_us * interval '1 microsecond' AS last_at, m.link,
           m.first_row, m.last_row, m.entry
    FROM unnest($2::text[], $3::text[], $4::int2[], $5::int2[], $6::int4[],
                $7::text[], $8::int8[], $9::int8[], $10::int8[], $11::text[], $12::int8[], $13::int8[])
         WITH ORDINALITY AS m (org, campaign, old, new, gained, columns, n, first_us, last_us, link,
                               first_row, last_row, entry)
),
meaning AS MATERIALIZED (
    SELECT k.old, k.new, k.gained, e.*
    FROM (SELECT DISTINCT m.old, m.new, m.gained FROM moved m) k
    CROSS JOIN LATERAL fold_meaning(k.old, k.new, k.gained) e
),
keyed AS MATERIALIZED (
    SELECT r.rule, r.key, r."window", r.fields, r.kinds, m.org, m.campaign,
           m.columns, m.n, m.first_at, m.last_at, m.link, m.first_row, m.last_row, m.new, m.entry,
           e.status, e.prev_status, e.flags, e.names, e.deltas
    FROM moved m
    JOIN meaning e ON e.old = m.old AND e.new = m.new AND e.gained = m.gained
    CROSS JOIN LATERAL fold_rules_of(m.org, m.campaign, m.first_at, e.status,
                                     e.prev_status, e.entered, e.flags, m.columns) r
)
