-- Shares out the shards among the instances, without a leader. It keeps those of this instance, gives away those
-- above its share, and takes free ones. me: the instance; lease_ms: after that time the others may take its shards.
-- Returns the shards that it owns.
CREATE OR REPLACE FUNCTION actions_own(me text, lease_ms int8) RETURNS SETOF int2 LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz := clock_timestamp();
    until timestamptz := now_at + lease_ms * interval '1 millisecond';
    share int8;
    mine int8;
    r record;
BEGIN
    INSERT INTO action_instance (instance, seen_at) VALUES (me, now_at)
    ON CONFLICT (instance) DO UPDATE SET seen_at = EXCLUDED.seen_at;
    -- Times from before the server's clock went back would keep dead instances alive: no lease ends later than one that
    -- begins now.
    UPDATE action_instance i SET seen_at = now_at WHERE i.seen_at > now_at;
    DELETE FROM action_instance i WHERE i.seen_at < now_at - 10 * lease_ms * interval '1 millisecond';
    SELECT ceil((SELECT count(*) FROM action_lane)::float8 / count(*))::int8 INTO share
    FROM action_instance i WHERE i.seen_at > now_at - lease_ms * interval '1 millisecond';
    PERFORM FROM action_lane l ORDER BY l.lane FOR UPDATE; -- in the order of claims: no deadlock
    UPDATE action_lane l SET lease_until = until WHERE l.lease_until > until AND l.owner <> me;
    UPDATE action_lane l SET lease_until = until WHERE l.owner = me;
    GET DIAGNOSTICS mine = ROW_COUNT;
    IF mine > share THEN
        UPDATE action_lane l SET owner = NULL
        WHERE l.owner = me AND l.lane IN (SELECT k.lane FROM action_lane k WHERE k.owner = me ORDER BY k.lane DESC
                                          LIMIT mine - share);
    END IF;
    FOR r IN SELECT k.lane FROM action_lane k
             WHERE mine < share AND (k.owner IS NULL OR k.lease_until < now_at)
             ORDER BY hashint8(k.lane + hashtext(me)), k.lane LIMIT GREATEST(share - mine, 0)
    LOOP
        UPDATE action_lane l SET owner = me, lease_until = until
        WHERE l.lane = r.lane AND (l.owner IS NULL OR l.lease_until < now_at);
    END LOOP;
    RETURN QUERY SELECT l.lane FROM action_lane l WHERE l.owner = me ORDER BY l.lane;
END
$$;
