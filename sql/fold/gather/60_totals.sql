-- The counts, in rows of the shard that does the work, so that shards do not wait for each other's rows.
, total AS (
    INSERT INTO fold_total AS t (rule, lane, events, groups, avoidable)
    SELECT e.rule, 0, e.n, g.n, g.avoidable
    FROM (SELECT n.rule, sum(n.events)::int8 AS n FROM grouped n GROUP BY n.rule) e
    JOIN (SELECT o.rule, count(*) FILTER (WHERE o.fresh) AS n,
                 count(*) FILTER (WHERE o.fresh AND o.since < r."window") AS avoidable
          FROM opened o JOIN fold_rule r USING (rule)
          GROUP BY o.rule) g USING (rule)
    ON CONFLICT (rule, lane) DO UPDATE
    SET events = t.events + EXCLUDED.events, groups = t.groups + EXCLUDED.groups,
        avoidable = t.avoidable + EXCLUDED.avoidable
),
clock AS (
    UPDATE fold_lane l SET gathered_at = timestamptz 'epoch' + $17::int8 * interval '1 microsecond'
    FROM (SELECT count(*) >= $15::int4 OR COALESCE(sum(t.size), 0) >= $16::int8 AS rest FROM taken t) w
    WHERE l.lane = 0 AND $17::int8 IS NOT NULL AND NOT w.rest
)
