-- Part of actions_claim(): reads which actions are due.
--
-- shards: locked ones; now_at: the time of the round. due_limit: rows to read in all; share: of each shard, unless
-- others leave some over. due: their ids. crowded: the shards in which more is due than was read. actions_pick_fair()
-- picks from these, and their row notes where the turn of the organisations stands. So a round costs the same however
-- many actions wait.
CREATE OR REPLACE FUNCTION actions_pick_due(shards int4[], now_at timestamptz, due_limit int4, share int4,
                                            OUT due int8[], OUT crowded int4[])
LANGUAGE plpgsql AS $$
DECLARE
    turns text[] := '{}'; -- the organisation at which the turn of each crowded shard stands now
    shard int4;
    fair record;
BEGIN
    WITH s AS MATERIALIZED (
        SELECT w.lane,
               ARRAY(SELECT a.id FROM action a WHERE a.lane = w.lane AND a.status = 'pending' AND a.perform_at <= now_at
                     ORDER BY a.perform_at, a.id LIMIT share + 1) AS ids
        FROM unnest(shards) AS w (lane)
    )
    SELECT ARRAY(SELECT unnest(s.ids) FROM s WHERE cardinality(s.ids) <= share),
           ARRAY(SELECT s.lane FROM s WHERE cardinality(s.ids) > share)
    INTO due, crowded;
    IF crowded = '{}' THEN
        RETURN;
    END IF;
    share := GREATEST((due_limit - cardinality(due)) / cardinality(crowded), share);
    FOREACH shard IN ARRAY crowded LOOP
        SELECT * INTO fair FROM actions_pick_fair(shard, now_at, share);
        due := due || fair.due;
        turns := turns || fair.turn;
    END LOOP;
    UPDATE action_lane l SET org_cursor = t.turn FROM unnest(crowded, turns) AS t (lane, turn)
    WHERE l.lane = t.lane AND l.lane = ANY (crowded) AND l.org_cursor IS DISTINCT FROM t.turn;
END
$$;
