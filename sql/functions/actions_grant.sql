-- Charges the limits of org, an organisation, or those of all together ('*').
--
-- requested: attempts. default_interval (us between two attempts), default_burst, default_concurrency: the
-- configuration's limits, where org_limit has none of its own. NULL or 0: no limit. allowed: how many attempts it may
-- make now; at: the time at which they were charged, so that the stored time is the counted one. A call holds its
-- place until its result is stored or its lease is over: a process that is gone keeps none. Claims that ask for the
-- same row wait for each other here, so the count below is complete.
CREATE OR REPLACE FUNCTION actions_grant(org text, requested int4, default_interval int8,
                                         default_burst int8, default_concurrency int4,
                                         OUT allowed int4, OUT at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    l org_limit;
    granted_now int8 := requested;
    gap int8;
    depth int8;
    parallel int4;
    now_us int8;
    full_us int8;
BEGIN
    allowed := requested;
    at := clock_timestamp();
    IF default_interval > 0 OR default_concurrency > 0 THEN
        INSERT INTO org_limit (org_id) VALUES (org) ON CONFLICT DO NOTHING;
    END IF;
    UPDATE org_limit SET touched = touched + 1 WHERE org_id = org RETURNING * INTO l;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    at := clock_timestamp();
    gap := COALESCE(l.interval_us, default_interval, 0);
    depth := COALESCE(l.burst, default_burst, 1);
    parallel := COALESCE(l.concurrency, default_concurrency, 0);
    now_us := (extract(epoch FROM at) * 1000000)::int8;
    -- Not further ahead than an empty bucket of today's limit: it counts at once, and a clock that went back stops
    -- nothing for long.
    full_us := LEAST(GREATEST(l.full_at_us, now_us), now_us + depth * gap);
    IF gap > 0 THEN
        granted_now := LEAST(granted_now, GREATEST((now_us + depth * gap - full_us) / gap, 0));
    END IF;
    IF parallel > 0 THEN
        granted_now := LEAST(granted_now, GREATEST(parallel - (
            SELECT count(*) FROM action a
            WHERE a.status = 'running' AND a.lease_until >= at AND (a.org_id = org OR org = '*')), 0));
    END IF;
    UPDATE org_limit o
    SET full_at_us = full_us + granted_now * gap, granted = o.granted + granted_now,
        deferred = o.deferred + (granted_now < requested)::int4
    WHERE o.org_id = org;
    allowed := granted_now;
END
$$;
