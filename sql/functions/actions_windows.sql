-- Part of actions_claim(): postpones due actions whose window is not open to its next opening. They stay pending. Where
-- the step says so, subjects are spread over a time from the opening on (smooth_ms), each by its hash.
--
-- due: ids; now_at: the time of the round. zone, zone_field: as action_zone() takes them. allowed: the ids that are
-- left. windowed: those of them that have a window; closes: when it closes, or a day later than now_at. The last second
-- of a window is left to calls that are on their way.
CREATE OR REPLACE FUNCTION actions_windows(due int8[], now_at timestamptz, zone text, zone_field text,
                                           OUT allowed int8[], OUT windowed int8[], OUT closes timestamptz[])
LANGUAGE plpgsql AS $$
BEGIN
    allowed := due;
    windowed := '{}';
    closes := '{}';
    IF due = '{}' OR NOT EXISTS (SELECT FROM pipeline_step s WHERE s.from_second IS NOT NULL) THEN
        RETURN;
    END IF;
    WITH w AS MATERIALIZED (
        SELECT a.id, a.subject_hash, COALESCE(s.smooth_ms, 0) AS smooth_ms,
               COALESCE(b.best_second, s.from_second) AS from_second, COALESCE(b.best_days, s.days) AS days,
               s.till_second - (s.till_second - s.from_second < 86400)::int4 AS till_second,
               action_zone(r.data, a.message_id, actions_windows.zone_field, actions_windows.zone) AS zone
        FROM unnest(due) AS d (id)
        CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
        JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step AND s.from_second IS NOT NULL
        CROSS JOIN LATERAL (SELECT q.data FROM run q WHERE q.id = a.run_id OFFSET 0) r
        LEFT JOIN LATERAL (SELECT f.* FROM action_best_hour(s.from_second, s.till_second, s.days,
                                                            action_value(r.data, a.message_id, s.hour_field)) f
                           WHERE s.hour_field IS NOT NULL) b ON true
    ),
    -- People have few windows between them, and each is looked up once.
    t AS MATERIALIZED (
        SELECT g.*, action_turns(g.opens, g.zone, g.from_second, g.till_second, g.days, false) AS closes
        FROM (SELECT x.*, action_turns(now_at, x.zone, x.from_second, x.till_second, x.days, true) AS opens
              FROM (SELECT DISTINCT w.zone, w.from_second, w.till_second, w.days FROM w) x) g
    ),
    -- By hashes of all columns: days may be NULL.
    e AS MATERIALIZED (
        SELECT w.id, w.subject_hash, w.smooth_ms, t.opens, t.closes
        FROM w JOIN t ON (w.zone, w.from_second, w.till_second, COALESCE(w.days, '{}'))
                       = (t.zone, t.from_second, t.till_second, COALESCE(t.days, '{}'))
    ),
    postponed AS (
        UPDATE action a
        SET held_by = 'window',
            perform_at = e.opens + LEAST(e.smooth_ms * interval '1 millisecond', e.closes - e.opens)
                                   * (((e.subject_hash >> 4) & 1048575) / 1048576.0),
            created_at = CASE WHEN a.attempt = 0 THEN e.opens ELSE a.created_at END -- the wait is no part of its age
        FROM e WHERE e.opens > now_at AND a.id = e.id AND a.id = ANY (due) AND a.status = 'pending'
    )
    SELECT ARRAY(SELECT d FROM unnest(due) d WHERE d NOT IN (SELECT e.id FROM e WHERE e.opens > now_at)),
           COALESCE(array_agg(e.id) FILTER (WHERE e.opens = now_at), '{}'),
           COALESCE(array_agg(e.closes) FILTER (WHERE e.opens = now_at), '{}')
    INTO allowed, windowed, closes
    FROM e;
END
$$;
