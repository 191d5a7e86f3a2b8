-- Version 9: what begins runs is written down in the transaction of the transition, and actions_begin() makes runs of it: a lane's
-- transaction pays for one row. Records of topics begin runs as well, once_per may forget, figures cost nothing for what waits.
--
-- Nothing is taken away: instances of the version before go on beside this one during a rolling update (run.at_status and at_flags
-- and the actions_tidy of two arguments are theirs, and nobody else's).

-- Topics whose records begin runs, and how far they have been read.
CREATE TABLE pipeline_source (
    pipeline_id integer REFERENCES pipeline,
    topic text COLLATE "C",
    orgs text[] COLLATE "C", -- NULL: all
    campaigns text[] COLLATE "C",
    PRIMARY KEY (topic, pipeline_id)
);

CREATE TABLE action_progress (
    topic text COLLATE "C",
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

-- Runs that a lane's transaction begins, until actions_begin() has made them: one appended row of arrays, or few, for the whole
-- transaction. org_id: all of them are of this organisation; '': they are of several that have few each. No key: a row is found
-- by its place, and who deletes it makes its runs.
CREATE TABLE run_intent (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id text COLLATE "C" NOT NULL,
    pipeline_id integer NOT NULL,
    messages text[] COLLATE "C" NOT NULL,
    orgs text[] COLLATE "C", -- where org_id is ''
    campaigns text[] COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- To try to compress what lives for moments costs more than all the rest of it.
ALTER TABLE run_intent ALTER COLUMN messages SET STORAGE EXTERNAL, ALTER COLUMN orgs SET STORAGE EXTERNAL,
    ALTER COLUMN campaigns SET STORAGE EXTERNAL;

CREATE INDEX run_intent_order ON run_intent (org_id, id);

CREATE INDEX run_once_ended ON run (ended_at) WHERE ended_at IS NOT NULL AND once_key IS NOT NULL;

-- A key of once_per, short enough for an index.
CREATE FUNCTION action_once_key(key text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(key) <= 1000 THEN key ELSE encode(sha256(convert_to(key, 'UTF8')), 'hex') END
$$;

-- Replaces what starts runs. Wordings that are known keep their rows; those that are not in the list start nothing any more,
-- their runs go on.
CREATE OR REPLACE FUNCTION pipelines_store(definitions jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    made int4;
BEGIN
    LOCK TABLE pipeline_trigger IN SHARE ROW EXCLUSIVE MODE;
    FOR one IN SELECT * FROM jsonb_array_elements(definitions) LOOP
        INSERT INTO pipeline (name, hash, active, org_field, subject_field, once_fields, first_step, first_delay_ms)
        SELECT one ->> 'name', one ->> 'hash', true, one ->> 'org', one ->> 'subject',
               CASE WHEN jsonb_typeof(one -> 'once_per') = 'array'
                    THEN ARRAY(SELECT jsonb_array_elements_text(one -> 'once_per')) END,
               (one ->> 'first_step')::int4, (one ->> 'first_delay_ms')::int8
        ON CONFLICT DO NOTHING
        RETURNING id INTO made;
        IF made IS NOT NULL THEN
            INSERT INTO pipeline_step
            SELECT made, s.step, s.stage, s.op, s.target, s.key, s."if", s."unless", s.awaits, s.within_ms, s.next_step,
                   s.next_delay_ms, s.else_step, s.else_delay_ms
            FROM jsonb_to_recordset(one -> 'steps')
                 AS s (step int4, stage text, op text, target text, key text, "if" int2[], "unless" int2[], awaits int2,
                       within_ms int8, next_step int4, next_delay_ms int8, else_step int4, else_delay_ms int8);
            INSERT INTO pipeline_trigger (pipeline_id, code, wakes)
            SELECT DISTINCT made, s.awaits, true FROM pipeline_step s WHERE s.pipeline_id = made AND s.awaits IS NOT NULL;
        END IF;
    END LOOP;
    UPDATE pipeline p SET active = w.one IS NOT NULL
    FROM pipeline q LEFT JOIN jsonb_array_elements(definitions) AS w (one)
                           ON w.one ->> 'name' = q.name AND w.one ->> 'hash' = q.hash
    WHERE p.id = q.id AND p.active <> (w.one IS NOT NULL);
    DELETE FROM pipeline_trigger WHERE NOT wakes;
    INSERT INTO pipeline_trigger (pipeline_id, code, wakes, orgs, campaigns)
    SELECT p.id, (w.one ->> 'on')::int2, false,
           CASE WHEN jsonb_typeof(w.one -> 'orgs') = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'orgs')) END,
           CASE WHEN jsonb_typeof(w.one -> 'campaigns') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'campaigns')) END
    FROM jsonb_array_elements(definitions) AS w (one)
    JOIN pipeline p ON p.name = w.one ->> 'name' AND p.hash = w.one ->> 'hash'
    WHERE w.one ->> 'on' IS NOT NULL;
    DELETE FROM pipeline_source;
    INSERT INTO pipeline_source (pipeline_id, topic, orgs, campaigns)
    SELECT p.id, w.one ->> 'topic',
           CASE WHEN jsonb_typeof(w.one -> 'orgs') = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'orgs')) END,
           CASE WHEN jsonb_typeof(w.one -> 'campaigns') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'campaigns')) END
    FROM jsonb_array_elements(definitions) AS w (one)
    JOIN pipeline p ON p.name = w.one ->> 'name' AND p.hash = w.one ->> 'hash'
    WHERE w.one ->> 'topic' IS NOT NULL;
END
$$;

-- Runs go to a step, after a delay: a row for it, or the end of the run. Nothing happens to runs that are over. (In plpgsql, since
-- the inbox does not exist yet.)
CREATE OR REPLACE FUNCTION actions_go_on(runs int8[], pipelines int4[], steps int4[], delays int8[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE run r SET status = 'done', ended_at = clock_timestamp()
    FROM unnest(runs, pipelines, steps) AS w (run, pipeline, step)
    JOIN pipeline_step s ON s.pipeline_id = w.pipeline AND s.step = w.step
    WHERE r.id = w.run AND r.id = ANY (runs) AND r.status = 'active' AND s.op = 'end'; -- by key, whatever the planner believes
    INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, awaits, settle, perform_at)
    SELECT r.id, s.pipeline_id, s.step, action_lane_of(r.subject_hash), r.subject_hash, r.org_id, r.message_id, s.awaits,
           CASE WHEN s.awaits IS NOT NULL AND NOT c.reached THEN '0'::xid8 END,
           clock_timestamp() + (w.delay + CASE WHEN c.reached THEN 0 ELSE s.within_ms END) * interval '1 millisecond'
    FROM unnest(runs, pipelines, steps, delays) AS w (run, pipeline, step, delay)
    JOIN pipeline_step s ON s.pipeline_id = w.pipeline AND s.step = w.step
    CROSS JOIN LATERAL (SELECT q.* FROM run q WHERE q.id = w.run AND q.status = 'active' OFFSET 0) r
    LEFT JOIN message_inbox m ON s.awaits IS NOT NULL AND m.message_id = r.message_id
    CROSS JOIN LATERAL (SELECT s.awaits IS NOT NULL AND action_reached(action_path(m.status), m.flags, s.awaits) AS reached) c
    WHERE s.op <> 'end';
END
$$;

-- Makes runs of what transactions of lanes have begun: those of organisations with few first, then the large ones in turns, from
-- `after` on; `most` rows of run_intent, of at most a batch each. What somebody else has in hand is passed over, so that any number of
-- instances do this beside each other. Nothing is lost by a crash: the row is gone exactly if its runs are there.
--
-- A time is the transition's, not that of the run's row; fields of the inbox are read here. What the first step awaits may have come
-- already: it is set up like any other await.
CREATE FUNCTION actions_begin(most int4, after text, OUT taken int4, OUT runs int8, OUT oldest_ms int8, OUT last text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    places tid[] := '{}';
    place tid;
    org text;
BEGIN
    places := ARRAY(SELECT i.ctid FROM run_intent i WHERE i.org_id = '' ORDER BY i.id LIMIT most FOR UPDATE SKIP LOCKED);
    last := after;
    WHILE cardinality(places) < most LOOP
        SELECT i.ctid, i.org_id INTO place, org FROM run_intent i
        WHERE i.org_id > last AND i.ctid <> ALL (places) ORDER BY i.org_id, i.id LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            places := places || place;
            last := org;
        ELSE
            EXIT WHEN last = '';
            last := '';
        END IF;
    END LOOP;
    taken := cardinality(places);
    runs := 0;
    IF taken = 0 THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true); -- what is lost of it is done again
    WITH i AS MATERIALIZED (
        DELETE FROM run_intent i WHERE i.ctid = ANY (places)
        RETURNING i.begun_at, i.org_id, i.pipeline_id, i.messages, i.orgs, i.campaigns
    ),
    -- Looked up once for a batch and not for each run of it.
    p AS MATERIALIZED (
        SELECT p.id, p.name, p.org_field, p.subject_field, p.once_fields, p.first_delay_ms, s.step, s.awaits, s.within_ms,
               NOT ARRAY[p.org_field, p.subject_field] || COALESCE(p.once_fields, '{}')
                   <@ ARRAY['message_id', 'org_id', 'campaign_id', 'subject'] AS looks
        FROM (SELECT DISTINCT i.pipeline_id FROM i) d
        JOIN pipeline p ON p.id = d.pipeline_id
        JOIN pipeline_step s ON s.pipeline_id = p.id AND s.step = p.first_step
    ),
    f AS (
        SELECT p.id AS pipeline_id, p.name, p.org_field, p.subject_field, p.once_fields, i.begun_at, w.message,
               COALESCE(w.org, i.org_id) AS org, w.campaign,
               CASE WHEN p.looks THEN (SELECT to_jsonb(m) FROM message_inbox m WHERE m.message_id = w.message) END AS row
        FROM i
        JOIN p ON p.id = i.pipeline_id
        CROSS JOIN LATERAL unnest(i.messages, i.orgs, i.campaigns) AS w (message, org, campaign)
    ),
    g AS (
        SELECT f.pipeline_id, f.name, f.once_fields, f.begun_at, f.message, f.campaign, f.org, f.row,
               COALESCE(CASE f.org_field WHEN 'org_id' THEN f.org WHEN 'campaign_id' THEN f.campaign
                                         WHEN 'message_id' THEN f.message ELSE f.row ->> f.org_field END, '') AS run_org,
               COALESCE(NULLIF(CASE f.subject_field WHEN 'message_id' THEN f.message WHEN 'campaign_id' THEN f.campaign
                                                    WHEN 'org_id' THEN f.org ELSE f.row ->> f.subject_field END, ''),
                        f.message) AS subject
        FROM f
    ),
    wanted AS MATERIALIZED (
        SELECT f.pipeline_id, f.begun_at, f.message, f.campaign, f.run_org AS org, f.subject,
               CASE WHEN f.once_fields IS NOT NULL THEN
                   (SELECT action_once_key((jsonb_build_array(f.name) || jsonb_agg(COALESCE(
                        CASE o.name WHEN 'org_id' THEN f.org WHEN 'campaign_id' THEN f.campaign
                                    WHEN 'message_id' THEN f.message WHEN 'subject' THEN f.subject
                                    ELSE f.row ->> o.name END, '') ORDER BY o.n))::text)
                    FROM unnest(f.once_fields) WITH ORDINALITY AS o (name, n)) END AS once
        FROM g f
    ),
    -- In the order of the keys: two that begin the same runs do not wait for each other in a circle.
    once AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, once_key, message_id, campaign_id, started_at)
        SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.once, w.message, w.campaign, w.begun_at
        FROM wanted w
        WHERE w.once IS NOT NULL
        ORDER BY w.once, w.begun_at
        ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
        RETURNING r.id, r.pipeline_id, r.org_id, r.subject_hash, r.message_id, r.started_at
    ),
    -- Looking for a conflict that cannot be would write each row down twice.
    always AS (
        INSERT INTO run AS r (pipeline_id, org_id, subject, subject_hash, message_id, campaign_id, started_at)
        SELECT w.pipeline_id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.message, w.campaign, w.begun_at
        FROM wanted w
        WHERE w.once IS NULL
        RETURNING r.id, r.pipeline_id, r.org_id, r.subject_hash, r.message_id, r.started_at
    ),
    made AS MATERIALIZED (
        SELECT * FROM once
        UNION ALL
        SELECT * FROM always
    ),
    first AS (
        INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, awaits, settle, perform_at)
        SELECT m.id, m.pipeline_id, p.step, action_lane_of(m.subject_hash), m.subject_hash, m.org_id, m.message_id, p.awaits,
               CASE WHEN p.awaits IS NOT NULL AND NOT c.reached THEN '0'::xid8 END,
               m.started_at + (p.first_delay_ms + CASE WHEN c.reached THEN 0 ELSE p.within_ms END) * interval '1 millisecond'
        FROM made m
        JOIN p ON p.id = m.pipeline_id
        CROSS JOIN LATERAL (SELECT p.awaits IS NOT NULL AND (
                                SELECT action_reached(action_path(x.status), x.flags, p.awaits)
                                FROM message_inbox x WHERE x.message_id = m.message_id) IS TRUE AS reached) c
    ),
    counted AS (
        INSERT INTO pipeline_delta (name, started, repeated)
        SELECT p.name, COALESCE(s.n, 0), w.n - COALESCE(s.n, 0)
        FROM (SELECT w.pipeline_id, count(*) AS n FROM wanted w GROUP BY w.pipeline_id) w
        JOIN p ON p.id = w.pipeline_id
        LEFT JOIN (SELECT m.pipeline_id, count(*) AS n FROM made m GROUP BY m.pipeline_id) s ON s.pipeline_id = w.pipeline_id
    )
    SELECT (SELECT count(*) FROM wanted), (extract(epoch FROM clock_timestamp() - min(i.begun_at)) * 1000)::int8
    INTO runs, oldest_ms
    FROM i;
END
$$;

-- A round of some lanes of one owner: what is due and may run is claimed and returned; waits that are over and steps that are passed
-- over go on at once. The rows of the lanes are taken first, in order, so rounds of a lane follow each other, whoever makes them,
-- and see all that the one before did; who does not own any of the lanes any more gets nothing. Lanes with nothing to do are
-- not taken, and cost a look.
--
-- Due rows are read by time, lane after lane, until `look` of them are there. Only if a lane has more than its part of that, its
-- organisations take turns instead, `weight` shares each, from where the last round ended: a round costs the same however
-- many wait.
--
-- An await is set up by a transaction that the transition it waits for may not see, nor be seen by. So it is looked at once
-- more when every transaction that could have missed it is over: `settle` is '0' when new, then the number below which all
-- transactions have to be gone.
--
-- `shut` are endpoints that are left alone for a while: what waits for them is held, so that it is out of the way. A goal
-- ('webhook:crm', 'produce:topic') has room for so many; one that is not named has no limit.
--
-- Returns the claimed ones, and at last a row whose action_id is NULL: token = how many went on, attempt = how many were deferred,
-- run_id = how many of the lanes were looked at, in the order given.
CREATE OR REPLACE FUNCTION actions_claim(lanes int4[], me text, look int4, most int4, lease_ms int8, shut text[],
                              goals text[], rooms int4[], org_interval int8, org_burst int8, org_concurrency int4,
                              all_interval int8, all_burst int8, all_concurrency int4)
RETURNS TABLE (action_id int8, token int8, attempt int4, run_id int8, pipeline text, stage text, op text, target text, key text,
               org_id text, age_ms int8, wait_ms int8, late_ms int8, body text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_at timestamptz := clock_timestamp();
    part_of_lane int4 := GREATEST(look / 4, LEAST(look, 128));
    owned bool;
    busy int4[];
    looked int4 := 0;
    my_lane int4;
    turn text;
    next_org text;
    first_turn text;
    wrapped boolean;
    due int8[] := '{}';
    of_lane int8[];
    ready int8[];
    ready_orgs text[];
    chosen int8[] := '{}';
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

    FOREACH my_lane IN ARRAY lanes LOOP
        EXIT WHEN cardinality(due) >= look;
        looked := looked + 1;
        CONTINUE WHEN my_lane <> ALL (busy);

        -- What was held by something that holds no longer.
        FOR r IN
            WITH RECURSIVE h (held_by) AS (
                (SELECT a.held_by FROM action a WHERE a.lane = my_lane AND a.status = 'held' ORDER BY a.held_by LIMIT 1)
                UNION ALL
                SELECT (SELECT a.held_by FROM action a WHERE a.lane = my_lane AND a.status = 'held' AND a.held_by > h.held_by
                        ORDER BY a.held_by LIMIT 1)
                FROM h WHERE h.held_by IS NOT NULL
            )
            SELECT h.held_by FROM h
            WHERE h.held_by IS NOT NULL
              AND NOT EXISTS (SELECT FROM org_limit o WHERE o.paused AND 'org:' || o.org_id = h.held_by)
              AND NOT EXISTS (SELECT FROM pipeline_pause p WHERE 'pipeline:' || p.name = h.held_by)
              AND NOT EXISTS (SELECT FROM unnest(shut) s WHERE 'endpoint:' || s = h.held_by)
        LOOP
            UPDATE action a SET status = 'pending', held_by = NULL
            WHERE a.id IN (SELECT b.id FROM action b WHERE b.lane = my_lane AND b.status = 'held' AND b.held_by = r.held_by
                           ORDER BY b.perform_at LIMIT part_of_lane);
        END LOOP;

        -- What is due.
        of_lane := ARRAY(SELECT a.id FROM action a WHERE a.lane = my_lane AND a.status = 'pending' AND a.perform_at <= now_at
                         ORDER BY a.perform_at, a.id LIMIT part_of_lane + 1);
        IF cardinality(of_lane) > part_of_lane THEN
            of_lane := '{}';
            SELECT l.org_cursor INTO turn FROM action_lane l WHERE l.lane = my_lane;
            first_turn := turn;
            wrapped := false;
            FOR i IN 1 .. 64 LOOP
                IF turn IS NULL THEN
                    SELECT a.org_id INTO next_org FROM action a
                    WHERE a.lane = my_lane AND a.status = 'pending' ORDER BY a.org_id LIMIT 1;
                ELSE
                    SELECT a.org_id INTO next_org FROM action a
                    WHERE a.lane = my_lane AND a.status = 'pending' AND a.org_id > turn ORDER BY a.org_id LIMIT 1;
                END IF;
                EXIT WHEN wrapped AND (next_org IS NULL OR first_turn IS NULL OR next_org > first_turn);
                IF next_org IS NULL THEN
                    wrapped := true;
                    turn := NULL;
                    CONTINUE;
                END IF;
                turn := next_org;
                of_lane := of_lane || ARRAY(
                    SELECT a.id FROM action a
                    WHERE a.lane = my_lane AND a.status = 'pending' AND a.org_id = turn AND a.perform_at <= now_at
                    ORDER BY a.perform_at, a.id
                    LIMIT GREATEST(part_of_lane / 32, 4)
                          * COALESCE((SELECT o.weight FROM org_limit o WHERE o.org_id = turn), 1));
                EXIT WHEN cardinality(of_lane) >= part_of_lane;
            END LOOP;
            UPDATE action_lane l SET org_cursor = turn WHERE l.lane = my_lane;
        END IF;
        due := due || of_lane;
    END LOOP;

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
            FROM decided d
            -- A transition that has just woken it has moved it: then the next round decides.
            WHERE a.id = d.id AND a.id = ANY (due) AND a.status = 'pending' AND a.perform_at = d.perform_at
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
    -- room for all, organisations take turns.
    SELECT array_agg(f.id ORDER BY f.org_id, f.perform_at, f.id), array_agg(f.org_id ORDER BY f.org_id, f.perform_at, f.id)
    INTO ready, ready_orgs
    FROM (
        SELECT y.id, y.org_id, y.perform_at
        FROM (
            SELECT w.*, row_number() OVER (PARTITION BY w.goal ORDER BY w.turn, w.perform_at, w.id) AS nth
            FROM (
                SELECT x.*, (row_number() OVER (PARTITION BY x.goal, x.org_id ORDER BY x.perform_at, x.id) - 1)
                            / COALESCE(o.weight, 1) AS turn
                FROM (
                    (SELECT DISTINCT ON (a.subject_hash) a.id, a.org_id, a.perform_at, s.op || ':' || s.target AS goal
                     FROM unnest(due) AS d (id)
                     CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
                     JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
                     WHERE a.status = 'pending'
                       AND (SELECT b.id FROM action b WHERE b.subject_hash = a.subject_hash AND b.status = 'running') IS NULL
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
            ) w
        ) y
        LEFT JOIN unnest(goals, rooms) AS g (goal, room) ON g.goal = y.goal
        WHERE g.room IS NULL OR y.nth <= g.room
        ORDER BY y.turn, y.perform_at, y.id
        LIMIT most
    ) f;

    -- What may be spent: first the ceiling of all, then each organisation's; what is not used goes back.
    IF ready IS NOT NULL THEN
        SELECT g.allowed INTO left_over
        FROM actions_grant('*', cardinality(ready), all_interval, all_burst, all_concurrency) g;
        FOR r IN SELECT x.org, count(*)::int4 AS n, array_agg(x.id ORDER BY x.nth) AS ids
                 FROM unnest(ready, ready_orgs) WITH ORDINALITY AS x (id, org, nth)
                 GROUP BY x.org ORDER BY x.org
        LOOP
            EXIT WHEN left_over = 0;
            SELECT g.allowed, g.at INTO allowed, charged_at
            FROM actions_grant(r.org, LEAST(r.n, left_over), org_interval, org_burst, org_concurrency) g;
            chosen := chosen || r.ids[1 : allowed];
            charged := charged || array_fill(charged_at, ARRAY[allowed]);
            left_over := left_over - allowed;
        END LOOP;
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
            WHERE a.id = c.id AND a.id = ANY (chosen) AND l.lane = a.lane AND (a.status = 'pending' OR (a.status = 'running' AND a.lease_until < now_at))
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
    run_id := looked;
    RETURN NEXT;
END
$$;

-- Results of claimed actions. One whose token is not the action's any more changes nothing: somebody else has claimed it.
-- Results: done, retry (after so many ms), dead, back (was not tried). Returns how many counted, and how many overlapped.
CREATE OR REPLACE FUNCTION actions_finish(me text, ids int8[], tokens int8[], results text[], waits int8[], classes text[],
                               statuses int4[], answers text[])
RETURNS TABLE (finished int8, overlapped int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    runs int8[];
    pipelines int4[];
    steps int4[];
    delays int8[];
    dead int8[];
BEGIN
    WITH w AS (
        SELECT * FROM unnest(ids, tokens, results, waits, classes, statuses, answers)
                      AS w (id, token, result, wait_ms, class, status, answer)
    ),
    f AS (
        UPDATE action a
        SET status = CASE w.result WHEN 'done' THEN 'done' WHEN 'dead' THEN 'dead' ELSE 'pending' END,
            perform_at = CASE w.result WHEN 'retry' THEN clock_timestamp() + w.wait_ms * interval '1 millisecond'
                                       ELSE a.perform_at END,
            wait_ms = CASE w.result WHEN 'retry' THEN w.wait_ms ELSE a.wait_ms END,
            attempt = a.attempt - (w.result = 'back')::int4,
            lease_until = NULL,
            ended_at = CASE WHEN w.result IN ('done', 'dead') THEN clock_timestamp() END,
            class = CASE WHEN w.result = 'back' THEN a.class ELSE w.class END,
            answer_status = CASE WHEN w.result = 'back' THEN a.answer_status ELSE w.status END,
            answer = CASE WHEN w.result = 'back' THEN a.answer ELSE w.answer END
        FROM w
        WHERE a.id = w.id AND a.id = ANY (ids) AND a.token = w.token AND a.status = 'running'
        RETURNING a.run_id, a.pipeline_id, a.step, w.result
    )
    SELECT array_agg(f.run_id) FILTER (WHERE f.result = 'done'), array_agg(f.pipeline_id) FILTER (WHERE f.result = 'done'),
           array_agg(s.next_step) FILTER (WHERE f.result = 'done'), array_agg(s.next_delay_ms) FILTER (WHERE f.result = 'done'),
           array_agg(f.run_id) FILTER (WHERE f.result = 'dead'), count(*)
    INTO runs, pipelines, steps, delays, dead, finished
    FROM f JOIN pipeline_step s ON s.pipeline_id = f.pipeline_id AND s.step = f.step;
    IF runs IS NOT NULL THEN
        PERFORM actions_go_on(runs, pipelines, steps, delays);
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

-- Starts runs of a pipeline for subjects that come in bulk; what once_per has seen is passed over. Returns how many began.
CREATE OR REPLACE FUNCTION actions_import(pipeline_name text, orgs text[], subjects text[], campaigns text[], messages text[], rows jsonb[])
RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    p pipeline;
    made int8[];
    n int8;
BEGIN
    SELECT * INTO p FROM pipeline x WHERE x.name = pipeline_name AND x.active;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'P0002', MESSAGE = format('there is no pipeline %s', pipeline_name);
    END IF;
    WITH began AS (
        INSERT INTO run (pipeline_id, org_id, subject, subject_hash, campaign_id, message_id, data, once_key)
        SELECT p.id, w.org, w.subject, action_subject_hash(w.org, w.subject), w.campaign, w.message, w.data,
               CASE WHEN p.once_fields IS NOT NULL THEN
                   action_once_key((
                       SELECT jsonb_build_array(p.name) || COALESCE(jsonb_agg(COALESCE(w.fields ->> f.name, '') ORDER BY f.n), '[]')
                       FROM unnest(p.once_fields) WITH ORDINALITY AS f (name, n))::text) END AS once
        FROM (SELECT u.org, u.subject, u.campaign, u.message, u.data,
                     COALESCE(u.data, '{}') || jsonb_strip_nulls(jsonb_build_object(
                         'org_id', u.org, 'subject', u.subject, p.subject_field, u.subject, 'campaign_id', u.campaign, 'message_id', u.message))
                         AS fields
              FROM unnest(orgs, subjects, campaigns, messages, rows) AS u (org, subject, campaign, message, data)) w
        ORDER BY once
        ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING
        RETURNING id
    )
    SELECT array_agg(id) INTO made FROM began;
    n := COALESCE(cardinality(made), 0);
    PERFORM actions_go_on(made, array_fill(p.id, ARRAY[n::int4]), array_fill(p.first_step, ARRAY[n::int4]),
                          array_fill(p.first_delay_ms, ARRAY[n::int4]));
    INSERT INTO pipeline_delta (name, started, repeated) VALUES (p.name, n, cardinality(subjects) - n);
    RETURN n;
END
$$;

-- What a text says as JSON, NULL where it is none that can be kept (\u0000, too deep).
CREATE FUNCTION action_json(value text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END
$$;

-- Records of topics begin runs: positions move in the same transaction, or nothing happens (RD001). Topics and partitions in order,
-- next is where each goes; records with the place and the value of each, NULL where it is no UTF-8. What is no JSON object with a
-- subject becomes a dead letter with index -3. Returns how many runs began, and how many records were refused.
CREATE FUNCTION actions_topic(topics text[], partitions int4[], expected int8[], next int8[], record_topics text[],
                              record_partitions int4[], record_offsets int8[], record_values text[],
                              OUT began int8, OUT refused int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    rows jsonb[];
    s record;
BEGIN
    began := 0;
    FOR i IN 1 .. cardinality(topics) LOOP
        UPDATE action_progress p SET next_offset = next[i]
        WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.next_offset = expected[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of actions in topic %s partition %s: expected %s, found another', topics[i], partitions[i], expected[i]);
        END IF;
    END LOOP;
    BEGIN
        rows := ARRAY(SELECT v.value::jsonb FROM unnest(record_values) WITH ORDINALITY AS v (value, n) ORDER BY v.n);
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN -- one by one
        rows := ARRAY(SELECT action_json(v.value) FROM unnest(record_values) WITH ORDINALITY AS v (value, n) ORDER BY v.n);
    END;
    rows := ARRAY(SELECT CASE WHEN jsonb_typeof(r.row) = 'object' AND GREATEST(
                                  octet_length(r.row ->> 'org_id'), octet_length(r.row ->> 'subject'),
                                  octet_length(r.row ->> 'campaign_id'), octet_length(r.row ->> 'message_id')) <= 1000
                                  AND r.row ->> 'subject' <> '' THEN r.row END
                  FROM unnest(rows) WITH ORDINALITY AS r (row, n) ORDER BY r.n);
    FOR s IN SELECT q.name, array_agg(w.org) AS orgs, array_agg(w.subject) AS subjects, array_agg(w.campaign) AS campaigns,
                    array_agg(w.message) AS messages, array_agg(w.data) AS data
             FROM (SELECT r.topic, COALESCE(r.row ->> 'org_id', '') AS org, r.row ->> 'subject' AS subject,
                          r.row ->> 'campaign_id' AS campaign, r.row ->> 'message_id' AS message,
                          r.row - '{org_id,subject,campaign_id,message_id}'::text[] AS data
                   FROM unnest(record_topics, rows) AS r (topic, row)
                   WHERE r.row IS NOT NULL) w
             JOIN pipeline_source t ON t.topic = w.topic AND (t.orgs IS NULL OR w.org = ANY (t.orgs))
                                    AND (t.campaigns IS NULL OR w.campaign = ANY (t.campaigns))
             JOIN pipeline q ON q.id = t.pipeline_id
             GROUP BY q.name ORDER BY q.name
    LOOP
        began := began + actions_import(s.name, s.orgs, s.subjects, s.campaigns, s.messages, s.data);
    END LOOP;
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload)
    SELECT r.topic, r.partition, r.at_offset, -3, 0, 'not_a_run', 'no JSON object with a subject, of texts up to 1000 bytes',
           convert_to(r.value, 'UTF8')
    FROM unnest(record_topics, record_partitions, record_offsets, record_values, rows) AS r (topic, partition, at_offset, value, row)
    WHERE r.row IS NULL
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS refused = ROW_COUNT;
END
$$;

-- Adds up what was appended, forgets what ended long ago. Returns how many rows it took away: the same again if it is `most`.
-- once_ms: how long once_per remembers; 0: for ever.
CREATE FUNCTION actions_tidy(keep_ms int8, most int4, once_ms int8) RETURNS int8
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
        WHERE b.ended_at < now() - keep_ms * interval '1 millisecond' AND b.status IN ('done', 'cancelled') LIMIT most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    -- What once_per has to remember stays.
    DELETE FROM run r WHERE r.id = ANY (ARRAY(
        SELECT q.id FROM run q
        WHERE q.ended_at < now() - keep_ms * interval '1 millisecond' AND q.once_key IS NULL AND q.status IN ('done', 'cancelled')
        LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    gone := GREATEST(gone, more);
    DELETE FROM run r WHERE once_ms > 0 AND r.id = ANY (ARRAY(
        SELECT q.id FROM run q
        WHERE q.ended_at < now() - GREATEST(keep_ms, once_ms) * interval '1 millisecond' AND q.once_key IS NOT NULL
          AND q.status IN ('done', 'cancelled')
        LIMIT most));
    GET DIAGNOSTICS more = ROW_COUNT;
    RETURN GREATEST(gone, more);
END
$$;

-- For metrics: how many actions there are in each state that is looked at, what pipelines have begun, results that came too late. By indexes
-- that hold only those: what waits costs nothing.
CREATE FUNCTION actions_counts() RETURNS TABLE (kind text, name text, n int8, repeated int8)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
    SELECT 'action', 'held', count(*), 0::int8 FROM action a WHERE a.status = 'held'
    UNION ALL
    SELECT 'action', 'running', count(*), 0 FROM action a WHERE a.status = 'running'
    UNION ALL
    SELECT 'action', 'dead', count(*), 0 FROM action a WHERE a.status = 'dead'
    UNION ALL
    SELECT 'pipeline', c.name, c.started, c.repeated FROM pipeline_count c
    UNION ALL
    SELECT 'overlap', '', count(*), 0 FROM action_overlap
$$;

INSERT INTO schema_version (version) VALUES (9);
