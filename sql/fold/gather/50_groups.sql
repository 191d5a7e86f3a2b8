, grouped AS MATERIALIZED (
    SELECT p.rule, p.key, sum(p.n) FILTER (WHERE p.name IS NULL)::int8 AS events, min(p.first_at) AS first_at,
           max(p.last_at) AS last_at,
           ('{' || CASE WHEN count(p.value) = 0 AND count(p.name) <= 4
                        THEN '"k": [' || COALESCE(string_agg(p.name, ', '), '') || '], ' ELSE '' END
            || '"v": {' || COALESCE(string_agg(p.name || ': ' || p.value::text, ', ') || ', ', '')
            || '"": {' || COALESCE(string_agg(p.name || ': ' || p.n, ', ') FILTER (WHERE p.value IS NULL), '')
            || '}}}')::jsonb AS part
    FROM parts p
    GROUP BY p.rule, p.key
    UNION ALL
    SELECT m.* FROM given g CROSS JOIN LATERAL fold_merge_parts(g.rules, g.keys, g.parts, g.counts, g.times) m
),
opened AS MATERIALIZED (
    INSERT INTO fold_group AS g (rule, key, lane, number, events, first_at, last_at, due_at, collected, opened_at)
    SELECT n.rule, n.key, fold_lane_of(n.rule, n.key), l.number_floor + 1, n.events, n.first_at, n.last_at,
           CASE WHEN n.events >= r.max_events OR r.removed_at IS NOT NULL THEN now()
                ELSE LEAST(n.last_at + r."window", n.first_at + r.max_hold) END,
           CASE WHEN n.part ? 'k' THEN n.part ELSE fold_merge(NULL, r.kinds, r.max_values, n.part) END, now()
    FROM grouped n
    JOIN fold_rule r ON r.rule = n.rule
    JOIN fold_lane l ON l.lane = fold_lane_of(n.rule, n.key)
    ORDER BY n.rule COLLATE "C", n.key COLLATE "C"
    ON CONFLICT (rule, key) DO UPDATE
    SET events = g.events + EXCLUDED.events,
        first_at = LEAST(g.first_at, EXCLUDED.first_at), last_at = GREATEST(g.last_at, EXCLUDED.last_at),
        due_at = CASE WHEN g.due_at IS NULL THEN EXCLUDED.due_at
                      WHEN g.events + EXCLUDED.events >= (SELECT r.max_events FROM fold_rule r WHERE r.rule = g.rule)
                      THEN LEAST(g.due_at, now())
                      ELSE LEAST(g.due_at, EXCLUDED.due_at) END, -- it may have been put off while events lay in memory
        collected = COALESCE(fold_sum(g.collected, EXCLUDED.collected),
                             (SELECT fold_merge(g.collected, r.kinds, r.max_values, EXCLUDED.collected)
                              FROM fold_rule r WHERE r.rule = g.rule)),
        opened_at = CASE WHEN g.due_at IS NULL THEN now() ELSE g.opened_at END
    RETURNING g.rule, g.opened_at = now() AS fresh, g.first_at - g.published_at AS since
)
