-- Moves pushes on whose time has come: deals those who gathered, and decides by the rule at the horizon. Any instance
-- may call it at any time: each push is dealt once and decided once. now_at: the time. Returns how many moved.
--
-- The rule: the stage with the best KPI wins if it is better than each other one, by the margin at least. A stage
-- without a figure, or none that is better: `otherwise` decides. With `best` the earlier variant wins a tie.
CREATE OR REPLACE FUNCTION pushes_step(now_at timestamptz) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    p push;
    best text;
    fallback text;
    moved int8 := 0;
BEGIN
    FOR p IN SELECT q.* FROM push q WHERE q.started_at IS NOT NULL AND q.dealt_at IS NULL AND q.deal_at <= now_at
             ORDER BY q.name FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM push_deal(p.name, p.rule);
        UPDATE push q
        SET dealt_at = now_at, decide_at = now_at + (p.rule ->> 'after_ms')::int8 * interval '1 millisecond'
        WHERE q.name = p.name;
        moved := moved + 1;
    END LOOP;
    FOR p IN SELECT q.* FROM push q WHERE q.started_at IS NOT NULL AND q.decided_at IS NULL AND q.decide_at <= now_at
             ORDER BY q.name FOR UPDATE SKIP LOCKED
    LOOP
        WITH f AS (SELECT g.* FROM push_figures(p.rule) g),
             -- By multiplication: fractions stay exact.
             x AS (SELECT b.stage,
                          b.numerator::numeric * o.denominator AS mine,
                          o.numerator::numeric * b.denominator AS theirs
                   FROM f b JOIN f o ON o.stage <> b.stage)
        SELECT (SELECT x.stage
                FROM x
                GROUP BY x.stage
                HAVING bool_and(x.mine > x.theirs AND x.mine >= x.theirs * (1 + (p.rule ->> 'margin')::numeric))
                   AND NOT EXISTS (SELECT FROM f WHERE f.denominator = 0)),
               (SELECT f.stage FROM f
                ORDER BY f.numerator::float8 / NULLIF(f.denominator, 0) DESC NULLS LAST, f.nth LIMIT 1)
        INTO best, fallback;
        IF p.rule ->> 'otherwise' <> 'best' THEN
            fallback := NULLIF(p.rule ->> 'otherwise', 'nobody');
        END IF;
        PERFORM push_decide(p.name, COALESCE(best, fallback), CASE WHEN best IS NULL THEN 'otherwise' ELSE 'rule' END,
                            now_at);
        moved := moved + 1;
    END LOOP;
    RETURN moved;
END
$$;
