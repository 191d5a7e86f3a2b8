-- Lets waiting runs begin while their organisations have room for them, in the order in which they came. Part of
-- actions_begin(). It takes the lock of an organisation only where nobody holds it, and looks at 16 of them at most,
-- each ten times a second. So it never waits, and its cost is bounded. most: runs. Returns how many begin.
CREATE OR REPLACE FUNCTION actions_release_waiting(most int4) RETURNS int4
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    now_at timestamptz := clock_timestamp();
    orgs text[];
    org text;
    cap int4;
    room int4;
    gone int4;
    released int4 := 0;
BEGIN
    -- One step through the index for each organisation, however many runs wait.
    WITH RECURSIVE w (org) AS (
        (SELECT r.org_id FROM run r WHERE r.status = 'waiting' ORDER BY r.org_id LIMIT 1)
        UNION ALL
        SELECT (SELECT r.org_id FROM run r WHERE r.status = 'waiting' AND r.org_id > w.org ORDER BY r.org_id LIMIT 1)
        FROM w WHERE w.org IS NOT NULL
    ),
    l AS MATERIALIZED (
        SELECT o.org_id FROM w JOIN org_open o ON o.org_id = w.org
        WHERE o.tried_at NOT BETWEEN now_at - interval '100 ms' AND now_at
        ORDER BY o.tried_at LIMIT 16 FOR UPDATE OF o SKIP LOCKED
    ),
    t AS (UPDATE org_open o SET tried_at = now_at FROM l WHERE o.org_id = l.org_id RETURNING o.org_id)
    SELECT COALESCE(array_agg(t.org_id), '{}') INTO orgs FROM t;
    FOREACH org IN ARRAY orgs LOOP
        cap := actions_cap(org);
        room := most - released;
        IF cap IS NOT NULL THEN
            room := LEAST(room, cap - (
                SELECT count(*) FROM (SELECT FROM run r WHERE r.org_id = org AND r.status = 'active' LIMIT cap) n));
        END IF;
        CONTINUE WHEN room <= 0;
        WITH next AS MATERIALIZED (
            SELECT a.id
            FROM action_lane l
            CROSS JOIN LATERAL (SELECT b.id, b.perform_at FROM action b
                                WHERE b.lane = l.lane AND b.status = 'held' AND b.held_by = 'cap:' || org
                                ORDER BY b.perform_at, b.id LIMIT room) a
            ORDER BY a.perform_at, a.id LIMIT room
        ),
        -- The action comes before its run, as where it is cancelled. The time of an await begins now.
        go AS (
            UPDATE action a
            SET status = 'pending', held_by = NULL, perform_at = now_at + a.wait_ms * interval '1 millisecond',
                wait_ms = 0, created_at = now_at + a.wait_ms * interval '1 millisecond',
                settle = CASE WHEN a.awaits IS NOT NULL THEN '0'::xid8 END
            WHERE a.id = ANY (ARRAY(SELECT n.id FROM next n)) AND a.status = 'held'
            RETURNING a.run_id
        ),
        up AS (
            UPDATE run r SET status = 'active'
            WHERE r.id = ANY (ARRAY(SELECT g.run_id FROM go g)) AND r.status = 'waiting'
        )
        SELECT count(*) INTO gone FROM go;
        released := released + gone;
    END LOOP;
    RETURN released;
END
$$;
