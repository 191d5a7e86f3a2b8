-- Part of actions_claim(): keeps calls back whose subject has had as many as its caps allow. Only calls that reached it
-- count (subject_call). A day and a week, which begins on Monday, are those of the person's zone.
--
-- due: ids; now_at: the time of the round. allowed: ids that may be called. beyond: how many may not; they wait for the
-- begin of the next day or week, or are passed over.
--
-- A subject that has a call under way waits for the next round: this statement might not see the end of that call, and
-- the next one might. So a call that is allowed counts all that came before it. A call whose process has gone counts,
-- too, until its action is claimed again: it may have reached the subject.
CREATE OR REPLACE FUNCTION actions_capped(due int8[], now_at timestamptz, OUT allowed int8[], OUT beyond int8)
LANGUAGE plpgsql AS $$
DECLARE
    s action_setting := (SELECT x FROM action_setting x);
    full_ids int8[];
    opens timestamptz[];
BEGIN
    allowed := due;
    beyond := 0;
    IF due = '{}' OR s.caps = '{}' THEN
        RETURN;
    END IF;
    WITH c AS MATERIALIZED (
        SELECT a.id, a.run_id, a.message_id, a.subject_hash,
               (SELECT b.id FROM action b
                WHERE b.subject_hash >= a.subject_hash AND b.subject_hash <= a.subject_hash AND b.status = 'running'
                ORDER BY b.subject_hash LIMIT 1) IS NOT NULL AS busy,
               (SELECT count(*) FROM subject_call k
                WHERE k.subject_hash = a.subject_hash AND k.at > now_at - interval '8 days') AS calls,
               (SELECT count(*) FROM action o
                WHERE o.subject_hash = a.subject_hash AND o.status IN ('pending', 'held')
                  AND o.lease_until IS NOT NULL AND o.id <> a.id) AS unknown
        FROM unnest(due) AS d (id)
        CROSS JOIN LATERAL (SELECT e.* FROM action e WHERE e.id = d.id OFFSET 0) a
        JOIN pipeline_step p ON p.pipeline_id = a.pipeline_id AND p.step = a.step AND p.capped
    ),
    -- Most subjects are far from any cap, and their zone does not matter.
    z AS MATERIALIZED (
        SELECT c.id, c.subject_hash, c.unknown, action_zone(r.data, c.message_id, s.zone_field, s.zone) AS zone
        FROM c CROSS JOIN LATERAL (SELECT q.data FROM run q WHERE q.id = c.run_id OFFSET 0) r
        WHERE NOT c.busy AND c.calls + c.unknown >= (SELECT min(m) FROM unnest(s.caps) m)
    ),
    f AS MATERIALIZED (
        SELECT c.id, max((date_trunc(u.unit, now_at AT TIME ZONE c.zone) + ('1 ' || u.unit)::interval)
                         AT TIME ZONE c.zone) AS opens
        FROM z c CROSS JOIN unnest(s.caps, s.cap_units) AS u (most, unit)
        WHERE u.most <= c.unknown + (
            SELECT count(*) FROM subject_call k
            WHERE k.subject_hash = c.subject_hash AND k.at > now_at - interval '8 days'
              AND date_trunc(u.unit, k.at AT TIME ZONE c.zone) = date_trunc(u.unit, now_at AT TIME ZONE c.zone))
        GROUP BY c.id
    )
    SELECT ARRAY(SELECT f.id FROM f ORDER BY f.id), ARRAY(SELECT f.opens FROM f ORDER BY f.id),
           ARRAY(SELECT d FROM unnest(due) d
                 WHERE d NOT IN (SELECT f.id FROM f UNION ALL SELECT c.id FROM c WHERE c.busy))
    INTO full_ids, opens, allowed;
    IF full_ids <> '{}' THEN
        beyond := actions_keep_back(full_ids, opens, now_at, s.beyond_subject_cap = 'pass');
    END IF;
END
$$;
