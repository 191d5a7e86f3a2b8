-- The variants of a push, and its remainder in a last row: $1 text push. dealt: subjects of a variant; waiting: the
-- remainder, and those that gather. numerator, denominator, rate: the KPI now; then_: at the decision. wins: what the
-- remainder gets. No row: there is no such push.
SELECT v.one ->> 'stage' AS stage, COALESCE(v.one ->> 'size', (v.one ->> 'share') || ' %') AS part,
       (SELECT count(*) FROM push_member m WHERE m.push = p.name AND m.stage = v.one ->> 'stage') AS dealt,
       NULL::int8 AS waiting, f.numerator, f.denominator,
       round(f.numerator::numeric / NULLIF(f.denominator, 0), 6) AS rate,
       (g.one ->> 'numerator')::int8 AS then_numerator, (g.one ->> 'denominator')::int8 AS then_denominator,
       CASE WHEN p.winner = v.one ->> 'stage' THEN p.decided_by END AS wins
FROM push p
CROSS JOIN LATERAL jsonb_array_elements(p.rule -> 'variants') WITH ORDINALITY AS v (one, n)
LEFT JOIN LATERAL push_figures(p.rule) f ON f.nth = v.n
LEFT JOIN LATERAL jsonb_array_elements(p.figures) AS g (one) ON g.one ->> 'stage' = v.one ->> 'stage'
WHERE p.name = $1::text
UNION ALL
SELECT 'remainder', NULL, NULL,
       (SELECT count(*)
        FROM action_lane l
        JOIN action a ON a.lane = l.lane AND a.status = 'held' AND a.held_by IN ('deal:' || p.name, 'push:' || p.name)),
       NULL, NULL, NULL, NULL, NULL, CASE WHEN p.decided_at IS NOT NULL AND p.winner IS NULL THEN p.decided_by END
FROM push p
WHERE p.name = $1::text;
