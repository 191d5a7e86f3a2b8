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
         s AS (SELECT d.name, sum(d.started)::int8 AS started, sum(d.repeated)::int8 AS repeated FROM d GROUP BY d.name)
    INSERT INTO pipeline_total AS t (name, started, repeated)
    SELECT s.name, s.started, s.repeated FROM s ORDER BY s.name
    ON CONFLICT (name) DO UPDATE SET started = t.started + EXCLUDED.started, repeated = t.repeated + EXCLUDED.repeated;
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
    DELETE FROM run r WHERE once_ms > 0 AND r.id = ANY (ARRAY(
        SELECT q.id FROM run q
        WHERE q.ended_at < now() - GREATEST(keep_ms, once_ms) * interval '1 millisecond' AND q.once_key IS NOT NULL
          AND q.status IN ('done', 'cancelled')
        LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    DELETE FROM run_begun b WHERE once_ms > 0 AND b.ctid = ANY (ARRAY(
        SELECT c.ctid FROM run_begun c
        WHERE c.begun_at < now() - GREATEST(keep_ms, once_ms) * interval '1 millisecond' LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    UPDATE action a SET perform_at = now() + retry_ms * interval '1 millisecond'
    WHERE a.id = ANY (ARRAY(
            SELECT b.id FROM action b
            WHERE b.status = 'pending' AND (b.attempt > 0 OR b.wait_ms > 0)
              AND b.perform_at > now() + retry_ms * interval '1 millisecond'
            ORDER BY b.perform_at DESC LIMIT most))
      AND a.status = 'pending';
    GET DIAGNOSTICS more = ROW_COUNT;
    RETURN GREATEST(gone, more);
END
$$;
