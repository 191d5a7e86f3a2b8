-- Part of actions_claim(): makes actions pending again whose lease is over, since the process that called them may be
-- gone. They may be held, decided, ranked and charged like all others. The row keeps lease_until: until the action is
-- claimed again, its old result still counts.
--
-- shards: locked ones; now_at: the time of the round; share: rows at most of each shard.
--
-- If the server's clock has gone back by more than a lease, leases from before would last as much longer. They begin
-- again.
CREATE OR REPLACE FUNCTION actions_end_leases(shards int4[], now_at timestamptz, share int4) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE action a SET status = 'pending'
    WHERE a.id = ANY (ARRAY(
            SELECT b.id
            FROM unnest(shards) AS s (lane)
            CROSS JOIN LATERAL (SELECT c.id FROM action c
                                WHERE c.lane = s.lane AND c.status = 'running' AND c.lease_until < now_at
                                ORDER BY c.lease_until LIMIT share) b))
      AND a.status = 'running';
    -- The last lease to end tells whether there are such: its action was claimed before the clock went back, or none
    -- was.
    IF EXISTS (SELECT FROM unnest(shards) AS s (lane)
               CROSS JOIN LATERAL (SELECT c.started_at, c.lease_until FROM action c
                                   WHERE c.lane = s.lane AND c.status = 'running' ORDER BY c.lease_until DESC LIMIT 1) b
               WHERE b.started_at - now_at > b.lease_until - b.started_at) THEN
        UPDATE action a SET lease_until = now_at + (a.lease_until - a.started_at), started_at = now_at
        WHERE a.lane = ANY (shards) AND a.status = 'running' AND a.started_at - now_at > a.lease_until - a.started_at;
    END IF;
END
$$;
