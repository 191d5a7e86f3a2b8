-- Part of actions_claim(): ends due actions that need no call (moves, awaits, steps whose condition does not hold)
-- and lets their runs go on. Decisions have no effect outside, so they are made here. A run ends here, whatever comes
-- next in it, if its message was deleted since. The deleted message had a row when the run began, or is known as
-- deleted. A message that never had a row is none of these: an import may come before it.
--
-- due: ids; now_at: the time of the round. undecided: the ids that need a call, or are
-- at a split (actions_split()). decided: how many runs went on, or
-- ended.
CREATE OR REPLACE FUNCTION actions_decide(due int8[], now_at timestamptz, OUT undecided int8[], OUT decided int8)
LANGUAGE plpgsql AS $$
DECLARE
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
BEGIN
    undecided := due;
    decided := 0;
    IF due = '{}' THEN
        RETURN;
    END IF;
    WITH c AS MATERIALIZED (
        SELECT a.id, a.perform_at, s.op, s.next_step, s.next_delay_ms, s.else_step, s.else_delay_ms,
               (s.if_codes = '{}' OR
                (SELECT bool_and(action_reached(m.path, m.flags, w)) FROM unnest(s.if_codes) w))
               AND (s.unless_codes = '{}' OR
                    NOT (SELECT bool_or(CASE WHEN w <> 10000 THEN action_reached(m.path, m.flags, w)
                                             ELSE (SELECT EXISTS (SELECT FROM suppression x
                                                                  WHERE x.key = suppression_key(r.org_id, r.subject))
                                                          AND is_suppressed(r.org_id, r.subject)
                                                   FROM run r WHERE r.id = a.run_id) END)
                         FROM unnest(s.unless_codes) w)) AS holds,
               action_reached(m.path, m.flags, s.awaits) AS reached,
               m.found IS NULL AND a.message_id IS NOT NULL
                   AND ((SELECT r.had_row FROM run r WHERE r.id = a.run_id) OR message_is_retired(a.message_id)) AS gone
        FROM unnest(due) AS d (id)
        CROSS JOIN LATERAL (SELECT e.* FROM action e WHERE e.id = d.id OFFSET 0) a
        JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
        LEFT JOIN LATERAL (SELECT true AS found, i.flags,
                                  (SELECT array_agg(p.ancestor) FROM status_path p WHERE p.code = i.status) AS path
                           FROM message_inbox i WHERE i.message_id = a.message_id LIMIT 1) m ON true
    ),
    choice AS MATERIALIZED (
        SELECT c.*, c.holds AND (c.op <> 'await' OR c.reached) AS good
        FROM c
        WHERE c.op NOT IN ('webhook', 'produce', 'split') OR NOT c.holds OR c.gone
    ),
    done AS (
        UPDATE action a
        SET status = CASE WHEN d.gone THEN 'cancelled' ELSE 'done' END, ended_at = now_at, settle = NULL,
            class = CASE WHEN d.gone THEN 'message_gone'
                         WHEN NOT d.holds THEN 'passed_over' WHEN d.op <> 'await' THEN d.op
                         WHEN d.good THEN 'reached' ELSE 'not_reached' END
        -- Read row by row, then updated by its place. A transition that has just woken the row has moved it: then the
        -- next round decides.
        FROM choice d
        CROSS JOIN LATERAL (SELECT b.ctid AS place FROM action b WHERE b.id = d.id OFFSET 0) k
        WHERE a.ctid = k.place AND a.status = 'pending' AND a.perform_at = d.perform_at
        RETURNING a.run_id, d.gone, a.pipeline_id, CASE WHEN d.good THEN d.next_step ELSE d.else_step END AS step,
                  CASE WHEN d.good THEN d.next_delay_ms ELSE d.else_delay_ms END AS delay
    ),
    over AS (
        UPDATE run r SET status = 'cancelled', ended_at = now_at
        WHERE r.id = ANY (ARRAY(SELECT done.run_id FROM done WHERE done.gone)) AND r.status = 'active'
    )
    SELECT array_agg(done.run_id) FILTER (WHERE NOT done.gone),
           array_agg(done.pipeline_id) FILTER (WHERE NOT done.gone),
           array_agg(done.step) FILTER (WHERE NOT done.gone),
           array_agg(done.delay) FILTER (WHERE NOT done.gone),
           count(*),
           ARRAY(SELECT d FROM unnest(due) d WHERE d NOT IN (SELECT x.id FROM choice x))
    INTO runs, pipelines, steps, delays, decided, undecided
    FROM done;
    IF runs IS NOT NULL THEN
        PERFORM actions_go_on(runs, pipelines, steps, delays);
    END IF;
END
$$;
