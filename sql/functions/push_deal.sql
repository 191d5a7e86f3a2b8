-- Part of pushes_step(): deals the subjects that gather at the split of a push with sizes. In the order of their places
-- the first ones go to the first variant, the next ones to the second. If there are fewer than the sizes together, each
-- variant gets its part of them, and nobody is left for the decision. Whoever comes later belongs to the remainder.
--
-- It locks no action: a claim that holds another subject meanwhile finds the push dealt at its next round.
-- name, rule: of the push, whose row is locked.
CREATE OR REPLACE FUNCTION push_deal(name text, rule jsonb) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO push_member (run_id, push, stage)
    SELECT w.run_id, name, v.stage
    FROM (SELECT a.run_id, count(*) OVER () AS n,
                 row_number() OVER (ORDER BY push_place(name, r.subject), a.run_id) - 1 AS place
          FROM action_lane l
          CROSS JOIN LATERAL (SELECT b.run_id FROM action b
                              WHERE b.lane = l.lane AND b.status = 'held' AND b.held_by = 'deal:' || name) a
          CROSS JOIN LATERAL (SELECT q.subject FROM run q WHERE q.id = a.run_id OFFSET 0) r) w
    JOIN (SELECT x.stage, x.high - x.size AS low, x.high, x.total
          FROM (SELECT e.one ->> 'stage' AS stage, (e.one ->> 'size')::int8 AS size,
                       (sum((e.one ->> 'size')::int8) OVER (ORDER BY e.n))::int8 AS high,
                       (sum((e.one ->> 'size')::int8) OVER ())::int8 AS total
                FROM jsonb_array_elements(rule -> 'variants') WITH ORDINALITY AS e (one, n)) x) v
        ON w.place >= LEAST(w.n, v.total) * v.low / v.total AND w.place < LEAST(w.n, v.total) * v.high / v.total
    ON CONFLICT DO NOTHING;
END
$$;
