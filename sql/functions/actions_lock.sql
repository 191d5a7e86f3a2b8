-- First part of actions_claim(): locks the rows of those shards that have something to do, in order.
--
-- shards, me: the shards, and the instance that has to own them. now_at: the time of the round. Returns the locked
-- shards: '{}' if none has anything to do, NULL if the instance owns none of them. A shard with nothing to do costs a
-- query and no lock.
CREATE OR REPLACE FUNCTION actions_lock(shards int4[], me text, now_at timestamptz)
RETURNS int4[] LANGUAGE plpgsql AS $$
DECLARE
    owned bool;
    busy int4[];
BEGIN
    SELECT bool_or(true), array_agg(s.lane) FILTER (WHERE s.busy) INTO owned, busy
    FROM (
        SELECT l.lane, COALESCE(
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'pending' AND a.perform_at <= now_at
             ORDER BY a.perform_at LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.settle IS NOT NULL LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'held' ORDER BY a.held_by LIMIT 1),
            (SELECT true FROM action a WHERE a.lane = l.lane AND a.status = 'running' AND a.lease_until < now_at
             ORDER BY a.lease_until LIMIT 1),
            -- Claimed before the clock went back: see actions_end_leases().
            (SELECT true
             FROM (SELECT a.started_at, a.lease_until FROM action a WHERE a.lane = l.lane AND a.status = 'running'
                   ORDER BY a.lease_until DESC LIMIT 1) a
             WHERE a.started_at - now_at > a.lease_until - a.started_at)) AS busy
        FROM action_lane l WHERE l.lane = ANY (shards) AND l.owner = me
    ) s;
    IF owned IS NULL THEN
        RETURN NULL;
    ELSIF busy IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT l.lane
                 FROM action_lane l
                 WHERE l.lane = ANY (busy) AND l.owner = me
                 ORDER BY l.lane FOR UPDATE);
END
$$;
