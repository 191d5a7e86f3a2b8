-- Stores the results of claimed actions, one entry of the arrays each, and lets their runs go on. It is idempotent: a
-- result whose token is not the action's changes nothing, since another instance has claimed the action. A result
-- that comes after its lease, but before such a claim, counts.
--
-- me: the instance. ids, tokens: as claimed. results: done, retry (after waits, in ms), dead. Not tried, so no attempt:
-- back (at once), wait (after waits), passed (the run goes on). classes, statuses, answers: how the attempt ended, for
-- people. finished: how many results counted; overlapped: how many actions ran twice at the same time.
CREATE OR REPLACE FUNCTION actions_finish(me text, ids int8[], tokens int8[],
                                          results text[], waits int8[], classes text[],
                                          statuses int4[], answers text[])
RETURNS TABLE (finished int8, overlapped int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
    dead int8[];
    reached int8[]; -- subjects, by calls that count against their caps
BEGIN
    WITH w AS (
        SELECT * FROM unnest(ids, tokens, results, waits, classes, statuses, answers)
                      AS w (id, token, result, wait_ms, class, status, answer)
    ),
    f AS (
        UPDATE action a
        SET status = CASE WHEN w.result IN ('done', 'passed') THEN 'done' WHEN w.result = 'dead' THEN 'dead'
                          ELSE 'pending' END,
            perform_at = CASE WHEN w.result IN ('retry', 'wait')
                              THEN clock_timestamp() + w.wait_ms * interval '1 millisecond' ELSE a.perform_at END,
            wait_ms = CASE WHEN w.result IN ('retry', 'wait') THEN w.wait_ms ELSE a.wait_ms END,
            attempt = a.attempt - (w.result IN ('back', 'wait', 'passed'))::int4,
            lease_until = NULL, held_by = NULL,
            ended_at = CASE WHEN w.result IN ('done', 'passed', 'dead') THEN clock_timestamp() END,
            class = CASE WHEN w.result = 'back' THEN a.class ELSE w.class END,
            answer_status = CASE WHEN w.result = 'back' THEN a.answer_status ELSE w.status END,
            answer = CASE WHEN w.result = 'back' THEN a.answer ELSE w.answer END
        FROM w
        WHERE a.id = w.id AND a.id = ANY (ids) AND a.token = w.token
          AND (a.status = 'running' OR (a.status IN ('pending', 'held') AND a.lease_until IS NOT NULL))
        RETURNING a.run_id, a.pipeline_id, a.step, a.subject_hash, w.result
    )
    SELECT array_agg(f.run_id) FILTER (WHERE f.result IN ('done', 'passed')),
           array_agg(f.pipeline_id) FILTER (WHERE f.result IN ('done', 'passed')),
           array_agg(CASE WHEN f.result = 'passed' THEN s.else_step ELSE s.next_step END)
               FILTER (WHERE f.result IN ('done', 'passed')),
           array_agg(CASE WHEN f.result = 'passed' THEN s.else_delay_ms ELSE s.next_delay_ms END)
               FILTER (WHERE f.result IN ('done', 'passed')),
           array_agg(f.run_id) FILTER (WHERE f.result = 'dead'),
           array_agg(f.subject_hash) FILTER (WHERE f.result = 'done' AND s.capped), count(*)
    INTO runs, pipelines, steps, delays, dead, reached, finished
    FROM f JOIN pipeline_step s ON s.pipeline_id = f.pipeline_id AND s.step = f.step;
    IF runs IS NOT NULL THEN
        PERFORM actions_go_on(runs, pipelines, steps, delays);
    END IF;
    IF reached IS NOT NULL AND EXISTS (SELECT FROM action_setting s WHERE s.caps <> '{}') THEN
        INSERT INTO subject_call (subject_hash) SELECT unnest(reached);
    END IF;
    IF dead IS NOT NULL THEN
        UPDATE run r SET status = 'dead', ended_at = clock_timestamp() WHERE r.id = ANY (dead) AND r.status = 'active';
    END IF;
    overlapped := 0;
    IF finished < cardinality(ids) THEN
        INSERT INTO action_overlap (action_id, token, instance)
        SELECT w.id, w.token, me FROM unnest(ids, tokens) AS w (id, token) JOIN action a ON a.id = w.id
        WHERE a.token > w.token;
        GET DIAGNOSTICS overlapped = ROW_COUNT;
    END IF;
    RETURN NEXT;
END
$$;
