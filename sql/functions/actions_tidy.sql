-- Adds up appended counts, deletes what ended long ago, and brings forward attempts that wait longer than they may
-- today. They wait too long where the longest wait was made shorter, or the server's clock has gone back.
--
-- keep_ms: for how long to keep it; most: rows at most; once_ms: how long once_per remembers, 0: without end;
-- retry_ms: the longest wait. Returns how many rows it changed: `most` if there may be more.
CREATE OR REPLACE FUNCTION actions_tidy(keep_ms int8, most int4, once_ms int8, retry_ms int8) RETURNS int8
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    gone int8;
    more int8;
BEGIN
    WITH d AS (DELETE FROM pipeline_delta RETURNING *),
         s AS (SELECT d.name, sum(d.started) AS started, sum(d.repeated) AS repeated, sum(d.refused) AS refused,
                      sum(d.dropped) AS dropped, sum(d.deferred) AS deferred, sum(d.capped) AS capped
               FROM d GROUP BY d.name)
    INSERT INTO pipeline_total AS t (name, started, repeated, refused, dropped, deferred, capped)
    SELECT s.name, s.started, s.repeated, s.refused, s.dropped, s.deferred, s.capped FROM s ORDER BY s.name
    ON CONFLICT (name) DO UPDATE
    SET started = t.started + EXCLUDED.started, repeated = t.repeated + EXCLUDED.repeated,
        refused = t.refused + EXCLUDED.refused, dropped = t.dropped + EXCLUDED.dropped,
        deferred = t.deferred + EXCLUDED.deferred, capped = t.capped + EXCLUDED.capped;
    DELETE FROM action a WHERE a.id = ANY (ARRAY(
        SELECT b.id FROM action b
        WHERE b.ended_at < now() - keep_ms * interval '1 millisecond' AND b.status IN ('done', 'cancelled')
        LIMIT most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    -- Runs that once_per has to remember stay.
    DELETE FROM run r WHERE r.id = ANY (ARRAY(
        SELECT q.id FROM run q
        WHERE q.ended_at < now() - keep_ms * interval '1 millisecond'
          AND q.once_key IS NULL
          AND q.status IN ('done', 'cancelled')
        LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    WITH r AS (
        DELETE FROM run r WHERE once_ms > 0 AND r.id = ANY (ARRAY(
            SELECT q.id FROM run q
            WHERE q.ended_at < now() - GREATEST(keep_ms, once_ms) * interval '1 millisecond' AND q.once_key IS NOT NULL
              AND q.status IN ('done', 'cancelled')
            LIMIT most))
        RETURNING r.id
    ),
    m AS (DELETE FROM push_member m WHERE m.run_id = ANY (ARRAY(SELECT r.id FROM r)))
    SELECT count(*) INTO more FROM r;
    gone := GREATEST(gone, more);
    DELETE FROM run_begun b WHERE once_ms > 0 AND b.ctid = ANY (ARRAY(
        SELECT c.ctid FROM run_begun c
        WHERE c.begun_at < now() - GREATEST(keep_ms, once_ms) * interval '1 millisecond' LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    DELETE FROM subject_call k WHERE k.ctid = ANY (ARRAY(
        SELECT c.ctid FROM subject_call c WHERE c.at < now() - interval '8 days' LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    UPDATE action a SET perform_at = now() + retry_ms * interval '1 millisecond'
    WHERE a.id = ANY (ARRAY(
            SELECT b.id FROM action b
            WHERE b.status = 'pending' AND (b.attempt > 0 OR b.wait_ms > 0) AND b.held_by IS NULL
              AND b.perform_at > now() + retry_ms * interval '1 millisecond'
            ORDER BY b.perform_at DESC LIMIT most))
      AND a.status = 'pending';
    GET DIAGNOSTICS more = ROW_COUNT;
    RETURN GREATEST(gone, more);
END
$$;
