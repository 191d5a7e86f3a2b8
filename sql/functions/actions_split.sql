-- Part of actions_claim(), behind actions_decide(): runs that stand at a split. A subject that was dealt goes to its
-- variant, and one of the remainder to the winner. All others are held, so that nothing polls them: until the push is
-- dealt ('deal:PUSH'), then until it is decided ('push:PUSH'). actions_release_held() brings them back.
--
-- A remainder whose push was decided for nobody ends as 'no_winner'. A run whose wording does not have the stage
-- becomes dead as 'no_stage', and is seen. due: ids; now_at: the time of the round. others: ids that are at no split.
-- dealt: how many needed no call.
CREATE OR REPLACE FUNCTION actions_split(due int8[], now_at timestamptz, OUT others int8[], OUT dealt int8)
LANGUAGE plpgsql AS $$
DECLARE
    ids int8[];
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
BEGIN
    others := due;
    dealt := 0;
    IF due = '{}' OR NOT EXISTS (SELECT FROM push) THEN
        RETURN;
    END IF;
    SELECT array_agg(a.id) FILTER (WHERE s.op = 'split'), COALESCE(array_agg(a.id) FILTER (WHERE s.op <> 'split'), '{}')
    INTO ids, others
    FROM unnest(due) AS d (id)
    CROSS JOIN LATERAL (SELECT e.* FROM action e WHERE e.id = d.id OFFSET 0) a
    JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step;
    IF ids IS NULL THEN
        others := due;
        RETURN;
    END IF;
    PERFORM pushes_start(ids, now_at);
    WITH c AS MATERIALIZED (
        SELECT a.id, a.run_id, a.pipeline_id, p.name, p.decided_at, s.exits, p.dealt_at IS NULL AS gathers,
               p.rule ? 'gather_ms' AS by_size, COALESCE(m.stage, v.stage) AS variant,
               COALESCE(m.stage, v.stage, p.winner) AS stage
        FROM unnest(ids) AS d (id)
        CROSS JOIN LATERAL (SELECT e.* FROM action e WHERE e.id = d.id OFFSET 0) a
        JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
        JOIN push p ON p.name = s.target
        LEFT JOIN push_member m ON m.run_id = a.run_id
        LEFT JOIN LATERAL (
            SELECT w.stage
            FROM (SELECT e.one ->> 'stage' AS stage, sum((e.one ->> 'share')::int4) OVER (ORDER BY e.n) AS high, e.n
                  FROM jsonb_array_elements(p.rule -> 'variants') WITH ORDINALITY AS e (one, n)) w
            WHERE NOT p.rule ? 'gather_ms'
              AND push_place(p.name, (SELECT r.subject FROM run r WHERE r.id = a.run_id)) * 100 < w.high
            ORDER BY w.n LIMIT 1) v ON true
    ),
    choice AS MATERIALIZED (
        SELECT c.*, (c.exits -> c.stage ->> 0)::int4 AS step, (c.exits -> c.stage ->> 1)::int8 AS delay,
               CASE WHEN c.by_size AND c.gathers THEN 'deal:' || c.name
                    WHEN c.variant IS NULL AND c.decided_at IS NULL THEN 'push:' || c.name END AS waits
        FROM c
    ),
    -- Read row by row, then updated by its place, as actions_decide() does.
    held AS (
        UPDATE action a SET status = 'held', held_by = h.waits
        FROM choice h
        CROSS JOIN LATERAL (SELECT b.ctid AS place FROM action b WHERE b.id = h.id OFFSET 0) k
        WHERE a.ctid = k.place AND h.waits IS NOT NULL AND a.status = 'pending'
    ),
    done AS (
        UPDATE action a
        SET status = CASE WHEN h.stage IS NULL THEN 'cancelled' WHEN h.step IS NULL THEN 'dead' ELSE 'done' END,
            class = CASE WHEN h.stage IS NULL THEN 'no_winner' WHEN h.step IS NULL THEN 'no_stage' ELSE 'split' END,
            ended_at = now_at
        FROM choice h
        CROSS JOIN LATERAL (SELECT b.ctid AS place FROM action b WHERE b.id = h.id OFFSET 0) k
        WHERE a.ctid = k.place AND h.waits IS NULL AND a.status = 'pending'
        RETURNING a.run_id, a.pipeline_id, a.status, h.step, h.delay, h.name, h.variant
    ),
    over AS (
        UPDATE run r SET status = d.status, ended_at = now_at
        FROM done d
        CROSS JOIN LATERAL (SELECT q.ctid AS place FROM run q WHERE q.id = d.run_id OFFSET 0) k
        WHERE r.ctid = k.place AND d.step IS NULL AND r.status = 'active'
    ),
    -- By shares a subject is dealt here.
    noted AS (
        INSERT INTO push_member (run_id, push, stage)
        SELECT d.run_id, d.name, d.variant FROM done d WHERE d.variant IS NOT NULL ON CONFLICT DO NOTHING
    )
    SELECT array_agg(d.run_id), array_agg(d.pipeline_id), array_agg(d.step), array_agg(d.delay)
    INTO runs, pipelines, steps, delays
    FROM done d WHERE d.step IS NOT NULL;
    dealt := cardinality(ids);
    IF runs IS NOT NULL THEN
        PERFORM actions_go_on(runs, pipelines, steps, delays);
    END IF;
END
$$;
