-- A round of some lanes of one owner: what is due and may run is claimed and returned; waits that are over and steps that are passed
-- over go on at once. The rows of the lanes are taken first, in order, so rounds of a lane follow each other, whoever makes them,
-- and see all that the one before did; who does not own any of the lanes any more gets nothing. Lanes with nothing to do are
-- not taken, and cost a look.
--
-- Due rows are read by time: `look` of them, of each lane its part. Only if more is due in a lane, its organisations take turns
-- instead, `weight` shares each, from where the last round ended: a round costs the same however many wait.
--
-- An await is set up by a transaction that the transition it waits for may not see, nor be seen by. So it is looked at once
-- more when every transaction that could have missed it is over: `settle` is '0' when new, then the number below which all
-- transactions have to be gone.
--
-- `shut` are endpoints that are left alone for a while: what waits for them is held, so that it is out of the way. A goal
-- ('webhook:crm', 'produce:topic') has room for so many; one that is not named has no limit.
--
-- Returns the claimed ones, and at last a row whose action_id is NULL: token = how many went on, attempt = how many were deferred,
-- run_id = how many of the lanes have no more due than was looked at.
CREATE OR REPLACE FUNCTION actions_claim(lanes int4[], me text, look int4, most int4, lease_ms int8, shut text[],
                              goals text[], rooms int4[], org_interval int8, org_burst int8, org_concurrency int4,
                              all_interval int8, all_burst int8, all_concurrency int4)
RETURNS TABLE (action_id int8, token int8, attempt int4, run_id int8, pipeline text, stage text, op text, target text, key text,
               org_id text, age_ms int8, wait_ms int8, late_ms int8, body text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_at timestamptz := clock_timestamp();
    owned bool;
    busy int4[];
    part_of_lane int4;
    crowded int4[]; -- lanes in which more is due than their part
    my_lane int4;
    turn text;
    first_turn text;
    wrapped boolean;
    next_org text;
    next_at timestamptz;
    weight int4;
    shares int4;
    turn_orgs text[];
    turn_weights int4[];
    turns text[] := '{}'; -- where the turn of each crowded lane stands now
    due int8[] := '{}';
    ready int8[];
    ready_orgs text[];
    ready_tags float8[];
    chosen int8[] := '{}';
    chosen_tags float8[] := '{}';
    charged timestamptz[] := '{}'; -- when each of them was
    charged_at timestamptz;
    left_over int4;
    allowed int4;
    went_on int8 := 0;
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
    r record;
BEGIN
    SELECT bool_or(true), array_agg(l.lane) FILTER (WHERE l.busy) INTO owned, busy
    FROM (
        SELECT l.lane, COALESCE(
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'pending' AND a.perform_at <= now_at
             ORDER BY a.perform_at LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.settle IS NOT NULL LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'held' ORDER BY a.held_by LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'running' AND a.lease_until < now_at
             ORDER BY a.lease_until LIMIT 1)) AS busy
        FROM action_lane l WHERE l.lane = ANY (lanes) AND l.owner = me
    ) l;
    IF owned IS NULL THEN
        RETURN;
    END IF;
    IF busy IS NOT NULL THEN
        busy := ARRAY(SELECT l.lane FROM action_lane l WHERE l.lane = ANY (busy) AND l.owner = me ORDER BY l.lane FOR UPDATE);
    END IF;
    IF busy IS NULL OR busy = '{}' THEN
        token := 0;
        attempt := 0;
        run_id := cardinality(lanes);
        RETURN NEXT;
        RETURN;
    END IF;

    UPDATE action a
    SET settle = NULL,
        perform_at = CASE WHEN action_reached(action_path(m.status), m.flags, a.awaits) THEN LEAST(a.perform_at, now_at)
                          ELSE a.perform_at END
    FROM action b LEFT JOIN message_inbox m ON m.message_id = b.message_id
    WHERE b.id = a.id AND a.lane = ANY (busy) AND a.settle > '0'::xid8
      AND a.settle <= pg_snapshot_xmin(pg_current_snapshot());
    UPDATE action a SET settle = pg_snapshot_xmax(pg_current_snapshot())
    WHERE a.lane = ANY (busy) AND a.settle = '0'::xid8;

    part_of_lane := GREATEST(look / cardinality(busy), 4);

    -- What was held by something that holds no longer.
    FOR r IN
        WITH RECURSIVE h (lane, held_by) AS (
            SELECT b.lane, (SELECT a.held_by FROM action a WHERE a.lane = b.lane AND a.status = 'held' ORDER BY a.held_by LIMIT 1)
            FROM unnest(busy) AS b (lane)
            UNION ALL
            SELECT h.lane, (SELECT a.held_by FROM action a WHERE a.lane = h.lane AND a.status = 'held' AND a.held_by > h.held_by
                            ORDER BY a.held_by LIMIT 1)
            FROM h WHERE h.held_by IS NOT NULL
        )
        SELECT h.lane, h.held_by FROM h
        WHERE h.held_by IS NOT NULL
          AND NOT EXISTS (SELECT FROM org_limit o WHERE o.paused AND 'org:' || o.org_id = h.held_by)
          AND NOT EXISTS (SELECT FROM pipeline_pause p WHERE 'pipeline:' || p.name = h.held_by)
          AND NOT EXISTS (SELECT FROM unnest(shut) s WHERE 'endpoint:' || s = h.held_by)
    LOOP
        UPDATE action a SET status = 'pending', held_by = NULL
        WHERE a.id = ANY (ARRAY(SELECT b.id FROM action b WHERE b.lane = r.lane AND b.status = 'held' AND b.held_by = r.held_by
                                ORDER BY b.perform_at LIMIT part_of_lane));
    END LOOP;

    -- What is due. Of a lane in which that is more than its part, nothing yet: what the others leave over is for such lanes.
    WITH l AS MATERIALIZED (
        SELECT b.lane, ARRAY(SELECT a.id FROM action a WHERE a.lane = b.lane AND a.status = 'pending' AND a.perform_at <= now_at
                             ORDER BY a.perform_at, a.id LIMIT part_of_lane + 1) AS ids
        FROM unnest(busy) AS b (lane)
    )
    SELECT ARRAY(SELECT unnest(l.ids) FROM l WHERE cardinality(l.ids) <= part_of_lane),
           ARRAY(SELECT l.lane FROM l WHERE cardinality(l.ids) > part_of_lane)
    INTO due, crowded;
    IF crowded <> '{}' THEN
        part_of_lane := GREATEST((look - cardinality(due)) / cardinality(crowded), part_of_lane);
    END IF;
    FOREACH my_lane IN ARRAY crowded LOOP
        SELECT l.org_cursor INTO turn FROM action_lane l WHERE l.lane = my_lane;
        first_turn := turn;
        wrapped := false;
        shares := 0;
        turn_orgs := '{}';
        turn_weights := '{}';
        FOR i IN 1 .. 64 LOOP
            EXIT WHEN shares >= part_of_lane;
            IF turn IS NULL THEN
                SELECT a.org_id, a.perform_at INTO next_org, next_at FROM action a
                WHERE a.lane = my_lane AND a.status = 'pending' ORDER BY a.org_id, a.perform_at LIMIT 1;
            ELSE
                SELECT a.org_id, a.perform_at INTO next_org, next_at FROM action a
                WHERE a.lane = my_lane AND a.status = 'pending' AND a.org_id > turn ORDER BY a.org_id, a.perform_at LIMIT 1;
            END IF;
            EXIT WHEN wrapped AND (next_org IS NULL OR first_turn IS NULL OR next_org > first_turn);
            turn := next_org;
            IF next_org IS NULL THEN
                wrapped := true;
            ELSIF next_at <= now_at THEN
                weight := COALESCE((SELECT o.weight FROM org_limit o WHERE o.org_id = turn), 1);
                shares := shares + LEAST(weight, GREATEST(part_of_lane / 4, 1)); -- a large weight does not shut out the others
                turn_orgs := turn_orgs || turn;
                turn_weights := turn_weights || weight;
            END IF;
        END LOOP;
        turns := turns || turn;
        due := due || ARRAY(
            SELECT d.id
            FROM unnest(turn_orgs, turn_weights) AS t (org, weight)
            CROSS JOIN LATERAL (
                SELECT a.id FROM action a
                WHERE a.lane = my_lane AND a.status = 'pending' AND a.org_id = t.org AND a.perform_at <= now_at
                ORDER BY a.perform_at, a.id
                LIMIT LEAST(t.weight::int8 * ((part_of_lane + shares - 1) / shares), part_of_lane)) d);
    END LOOP;
    UPDATE action_lane l SET org_cursor = t.turn FROM unnest(crowded, turns) AS t (lane, turn)
    WHERE l.lane = t.lane AND l.lane = ANY (crowded) AND l.org_cursor IS DISTINCT FROM t.turn;

    -- Held back from outside.
    IF shut <> '{}' OR EXISTS (SELECT FROM pipeline_pause) OR EXISTS (SELECT FROM org_limit o WHERE o.paused) THEN
        WITH held AS (
            SELECT a.id, CASE WHEN o.paused THEN 'org:' || a.org_id
                              WHEN k.name IS NOT NULL THEN 'pipeline:' || k.name
                              WHEN s.op = 'webhook' AND s.target = ANY (shut) THEN 'endpoint:' || s.target END AS reason
            FROM unnest(due) AS d (id)
            CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
            JOIN pipeline p ON p.id = a.pipeline_id
            JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
            LEFT JOIN pipeline_pause k ON k.name = p.name
            LEFT JOIN org_limit o ON o.org_id = a.org_id AND o.paused
        ),
        put AS (
            UPDATE action a SET status = 'held', held_by = held.reason FROM held
            WHERE a.id = held.id AND a.id = ANY (due) AND held.reason IS NOT NULL AND a.status = 'pending'
            RETURNING a.id
        )
        SELECT ARRAY(SELECT d FROM unnest(due) d WHERE d NOT IN (SELECT put.id FROM put)) INTO due;
    END IF;

    -- Decisions: no effect outside, so they are made here.
    IF due <> '{}' THEN
        WITH c AS MATERIALIZED (
            SELECT a.id, a.perform_at, s.op, s.next_step, s.next_delay_ms, s.else_step, s.else_delay_ms,
                   (s.if_codes = '{}' OR
                    (SELECT bool_and(action_reached(m.path, m.flags, w)) FROM unnest(s.if_codes) w))
                   AND (s.unless_codes = '{}' OR
                        NOT (SELECT bool_or(action_reached(m.path, m.flags, w)) FROM unnest(s.unless_codes) w)) AS holds,
                   action_reached(m.path, m.flags, s.awaits) AS reached
            FROM unnest(due) AS d (id)
            CROSS JOIN LATERAL (SELECT e.* FROM action e WHERE e.id = d.id OFFSET 0) a
            JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
            LEFT JOIN LATERAL (SELECT i.flags, (SELECT array_agg(p.ancestor) FROM status_path p WHERE p.code = i.status) AS path
                               FROM message_inbox i WHERE i.message_id = a.message_id OFFSET 0) m ON true
        ),
        decided AS MATERIALIZED (
            SELECT c.*, c.holds AND (c.op <> 'await' OR c.reached) AS good
            FROM c
            WHERE c.op NOT IN ('webhook', 'produce') OR NOT c.holds
        ),
        done AS (
            UPDATE action a
            SET status = 'done', ended_at = now_at, settle = NULL,
                class = CASE WHEN NOT d.holds THEN 'passed_over' WHEN d.op <> 'await' THEN d.op
                             WHEN d.good THEN 'reached' ELSE 'not_reached' END
            -- Looked up row by row, then taken by its place. A transition that has just woken it has moved it: then the next round decides.
            FROM decided d
            CROSS JOIN LATERAL (SELECT b.ctid AS place FROM action b WHERE b.id = d.id OFFSET 0) k
            WHERE a.ctid = k.place AND a.status = 'pending' AND a.perform_at = d.perform_at
            RETURNING a.run_id, a.pipeline_id, CASE WHEN d.good THEN d.next_step ELSE d.else_step END AS step,
                      CASE WHEN d.good THEN d.next_delay_ms ELSE d.else_delay_ms END AS delay
        )
        SELECT array_agg(done.run_id), array_agg(done.pipeline_id), array_agg(done.step), array_agg(done.delay),
               ARRAY(SELECT d FROM unnest(due) d WHERE d NOT IN (SELECT x.id FROM decided x))
        INTO runs, pipelines, steps, delays, due
        FROM done;
        IF runs IS NOT NULL THEN
            went_on := cardinality(runs);
            PERFORM actions_go_on(runs, pipelines, steps, delays);
        END IF;
    END IF;

    -- What may run: the first of each subject, unless one of it is running; and what nobody has finished in time. Where there is not
    -- room for all, organisations take turns: the n-th of each comes n / weight turns after its first, and who is first is
    -- drawn by lot, by weight, so that nobody is last each time.
    SELECT array_agg(f.id ORDER BY f.org_id, f.tag, f.id), array_agg(f.org_id ORDER BY f.org_id, f.tag, f.id),
           array_agg(f.tag ORDER BY f.org_id, f.tag, f.id)
    INTO ready, ready_orgs, ready_tags
    FROM (
        SELECT y.id, y.org_id, y.tag
        FROM (
            SELECT w.*, row_number() OVER (PARTITION BY w.goal ORDER BY w.tag, w.id) AS nth
            FROM (
                SELECT x.*, (row_number() OVER g - 1 - ln(1 - first_value(random()) OVER g)) / COALESCE(o.weight, 1) AS tag
                FROM (
                    (SELECT DISTINCT ON (a.subject_hash) a.id, a.org_id, a.perform_at, s.op || ':' || s.target AS goal
                     FROM unnest(due) AS d (id)
                     CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
                     JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
                     WHERE a.status = 'pending'
                       -- As a range in order, so that it is looked up by subject, whatever the planner believes of what runs.
                       AND (SELECT b.id FROM action b
                            WHERE b.subject_hash >= a.subject_hash AND b.subject_hash <= a.subject_hash AND b.status = 'running'
                            ORDER BY b.subject_hash LIMIT 1) IS NULL
                     ORDER BY a.subject_hash, a.perform_at, a.id)
                    UNION ALL
                    (SELECT a.id, a.org_id, a.perform_at, a.goal
                     FROM unnest(busy) AS b (lane)
                     CROSS JOIN LATERAL (SELECT c.id, c.org_id, c.perform_at, s.op || ':' || s.target AS goal
                                         FROM action c
                                         JOIN pipeline_step s ON s.pipeline_id = c.pipeline_id AND s.step = c.step
                                         WHERE c.lane = b.lane AND c.status = 'running' AND c.lease_until < now_at
                                           AND NOT (s.op = 'webhook' AND s.target = ANY (shut))
                                         ORDER BY c.lease_until LIMIT most) a)
                ) x
                LEFT JOIN org_limit o ON o.org_id = x.org_id
                WINDOW g AS (PARTITION BY x.goal, x.org_id ORDER BY x.perform_at, x.id)
            ) w
        ) y
        LEFT JOIN unnest(goals, rooms) AS g (goal, room) ON g.goal = y.goal
        WHERE g.room IS NULL OR y.nth <= g.room
        ORDER BY y.tag, y.id
        LIMIT most
    ) f;

    -- What may be spent: each organisation's, of which the ceiling of all takes the first; what is not used goes back.
    IF ready IS NOT NULL THEN
        SELECT g.allowed INTO left_over
        FROM actions_grant('*', cardinality(ready), all_interval, all_burst, all_concurrency) g;
        FOR r IN SELECT x.org, count(*)::int4 AS n, array_agg(x.id ORDER BY x.nth) AS ids, array_agg(x.tag ORDER BY x.nth) AS tags
                 FROM unnest(ready, ready_orgs, ready_tags) WITH ORDINALITY AS x (id, org, tag, nth)
                 WHERE left_over > 0
                 GROUP BY x.org ORDER BY x.org
        LOOP
            SELECT g.allowed, g.at INTO allowed, charged_at
            FROM actions_grant(r.org, LEAST(r.n, left_over), org_interval, org_burst, org_concurrency) g;
            chosen := chosen || r.ids[1 : allowed];
            chosen_tags := chosen_tags || r.tags[1 : allowed];
            charged := charged || array_fill(charged_at, ARRAY[allowed]);
        END LOOP;
        IF cardinality(chosen) > left_over THEN
            WITH c AS MATERIALIZED (
                SELECT c.id, c.charged_at, row_number() OVER (ORDER BY c.tag, c.id) AS nth
                FROM unnest(chosen, charged, chosen_tags) AS c (id, charged_at, tag)
            ),
            back AS (
                UPDATE org_limit o
                SET full_at_us = o.full_at_us - b.n * COALESCE(o.interval_us, org_interval, 0), granted = o.granted - b.n
                FROM (SELECT x.org, count(*) AS n
                      FROM c JOIN unnest(ready, ready_orgs) AS x (id, org) ON x.id = c.id
                      WHERE c.nth > left_over
                      GROUP BY x.org) b
                WHERE o.org_id = b.org
            )
            SELECT array_agg(c.id ORDER BY c.nth), array_agg(c.charged_at ORDER BY c.nth) INTO chosen, charged
            FROM c WHERE c.nth <= left_over;
        END IF;
        left_over := left_over - cardinality(chosen);
        IF left_over > 0 THEN
            UPDATE org_limit o
            SET full_at_us = o.full_at_us - left_over * COALESCE(o.interval_us, all_interval, 0), granted = o.granted - left_over
            WHERE o.org_id = '*';
        END IF;
    END IF;

    IF chosen <> '{}' THEN
        RETURN QUERY
        WITH taken AS (
            UPDATE action a
            SET status = 'running', token = l.token + c.n, attempt = a.attempt + 1, instance = me, settle = NULL,
                lease_until = clock_timestamp() + lease_ms * interval '1 millisecond', started_at = c.charged_at
            FROM unnest(chosen, charged) WITH ORDINALITY AS c (id, charged_at, n), action_lane l
            WHERE a.id = c.id AND a.id = ANY (chosen) AND l.lane = a.lane
              AND (a.status = 'pending' OR (a.status = 'running' AND a.lease_until < now_at))
            RETURNING a.*
        )
        SELECT t.id, t.token, t.attempt, t.run_id, p.name, s.stage, s.op, s.target,
               CASE s.key_field WHEN 'org_id' THEN t.org_id WHEN 'campaign_id' THEN u.campaign_id
                                WHEN 'message_id' THEN t.message_id ELSE u.subject END,
               t.org_id, (extract(epoch FROM now_at - t.created_at) * 1000)::int8, t.wait_ms,
               GREATEST((extract(epoch FROM now_at - t.perform_at) * 1000)::int8, 0),
               jsonb_strip_nulls(jsonb_build_object(
                   'type', 'receiptd.action', 'action_id', t.id, 'run_id', t.run_id, 'pipeline', p.name, 'stage', s.stage,
                   'org_id', t.org_id, 'campaign_id', u.campaign_id, 'message_id', t.message_id, 'subject', u.subject,
                   'status', k.name, 'data', u.data))::text
        FROM taken t
        JOIN run u ON u.id = t.run_id
        JOIN pipeline p ON p.id = t.pipeline_id
        JOIN pipeline_step s ON s.pipeline_id = t.pipeline_id AND s.step = t.step
        LEFT JOIN message_inbox m ON m.message_id = t.message_id
        LEFT JOIN message_status_priority k ON k.code = m.status;
        UPDATE action_lane l SET token = l.token + cardinality(chosen)
        WHERE l.lane = ANY (ARRAY(SELECT DISTINCT a.lane FROM action a WHERE a.id = ANY (chosen)));
    ELSE
        -- Nothing was spent and nobody will be called. What a crash of the server takes back is decided again.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    action_id := NULL;
    token := went_on;
    attempt := COALESCE(cardinality(ready), 0) - cardinality(chosen);
    run_id := cardinality(lanes) - cardinality(crowded);
    RETURN NEXT;
END
$$;
