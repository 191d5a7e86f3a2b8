-- Part of actions_pick_due(), for a shard in which more is due than may be read. Its organisations take turns, from
-- where the last round ended, with shares by org_limit.weight. shard: its number; now_at: the time of the round;
-- share: rows to read. Reads 64 organisations at most. due: ids of the actions. turn: the organisation at which the
-- turn ended, NULL: behind the last one.
CREATE OR REPLACE FUNCTION actions_pick_fair(shard int4, now_at timestamptz, share int4, OUT due int8[], OUT turn text)
LANGUAGE plpgsql AS $$
DECLARE
    first_turn text;
    wrapped boolean := false;
    next_org text;
    next_at timestamptz;
    weight int4;
    weights int4[] := '{}';
    orgs text[] := '{}';
    parts int4 := 0; -- sum of the weights
BEGIN
    SELECT l.org_cursor INTO turn FROM action_lane l WHERE l.lane = shard;
    first_turn := turn;
    FOR i IN 1 .. 64 LOOP
        EXIT WHEN parts >= share;
        IF turn IS NULL THEN
            SELECT a.org_id, a.perform_at INTO next_org, next_at FROM action a
            WHERE a.lane = shard AND a.status = 'pending' ORDER BY a.org_id, a.perform_at LIMIT 1;
        ELSE
            SELECT a.org_id, a.perform_at INTO next_org, next_at FROM action a
            WHERE a.lane = shard AND a.status = 'pending' AND a.org_id > turn ORDER BY a.org_id, a.perform_at LIMIT 1;
        END IF;
        EXIT WHEN wrapped AND (next_org IS NULL OR first_turn IS NULL OR next_org > first_turn);
        turn := next_org;
        IF next_org IS NULL THEN
            wrapped := true;
        ELSIF next_at <= now_at THEN
            weight := COALESCE((SELECT o.weight FROM org_limit o WHERE o.org_id = turn), 1);
            parts := parts + LEAST(weight, GREATEST(share / 4, 1)); -- a large weight does not lock out the others
            orgs := orgs || turn;
            weights := weights || weight;
        END IF;
    END LOOP;
    due := ARRAY(
        SELECT d.id
        FROM unnest(orgs, weights) AS t (org, weight)
        CROSS JOIN LATERAL (
            SELECT a.id FROM action a
            WHERE a.lane = shard AND a.status = 'pending' AND a.org_id = t.org AND a.perform_at <= now_at
            ORDER BY a.perform_at, a.id
            LIMIT LEAST(t.weight::int8 * ((share + parts - 1) / parts), share)) d);
END
$$;
