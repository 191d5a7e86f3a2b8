-- One round of the scheduler over the shards of one instance: claims actions that are due and may run. Actions that
-- need no call go on: waits that are over, steps whose condition does not hold.
--
-- shards: column action.lane; me: the instance that owns them.
--
-- due_limit: due rows to read, shared out evenly. claim_limit: rows to claim at most. lease_ms: after that time any
-- instance may claim them again. open_endpoints: their breaker is open, so actions that wait for them are held.
-- targets, capacities: how many more calls a target ('webhook:crm', 'produce:topic') may take. A target that is not
-- named has no limit. Limits, as actions_grant() takes them: of each organisation, and of all of them together. zone,
-- zone_field: of windows, as action_zone() takes them.
--
-- Returns a row for each claimed action. All of them carry the summary of the round. Column went_on: actions that
-- needed no call, wait for a window, or are beyond a cap of their subject. Column deferred: actions that a limit holds
-- back. Column drained: shards of which every due row was read. Column open_ms: how long from the round's time on the
-- action's window is open, NULL: without one. A round that claims nothing returns one row, whose action_id is NULL. No
-- row at all: the instance no longer owns any of the shards.
--
-- Rounds of a shard follow each other, on one instance or several, and each sees all that the one before did:
-- actions_lock() locks the rows of the shards first, in order. The settings below hold for the functions that this
-- one calls. They make them find rows by key: statistics of tables that change within seconds are always wrong.
CREATE OR REPLACE FUNCTION actions_claim(shards int4[], me text, due_limit int4,
                                         claim_limit int4, lease_ms int8, open_endpoints text[],
                                         targets text[], capacities int4[], org_interval int8,
                                         org_burst int8, org_concurrency int4,
                                         all_interval int8, all_burst int8, all_concurrency int4,
                                         zone text, zone_field text)
RETURNS TABLE (action_id int8, token int8, attempt int4, run_id int8,
               pipeline text, stage text, op text, target text, key text,
               org_id text, age_ms int8, wait_ms int8, late_ms int8,
               body text, lookup int4, step int4, subject text, campaign_id text, message_id text,
               trace text, went_on int8, deferred int4, drained int4, open_ms int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    now_at timestamptz := clock_timestamp();
    busy int4[] := actions_lock(shards, me, now_at);
    share int4;
    crowded int4[];
    due int8[];
    windows record;
    ready record;
    granted record;
    dealt int8;
    kept_back int8;
BEGIN
    went_on := 0;
    deferred := 0;
    drained := cardinality(shards);
    IF busy IS NULL THEN
        RETURN;
    ELSIF busy = '{}' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM actions_settle_awaits(busy, now_at);
    share := GREATEST(due_limit / cardinality(busy), 4);
    PERFORM actions_end_leases(busy, now_at, share);
    PERFORM actions_release_held(busy, open_endpoints, share);
    SELECT p.due, p.crowded INTO due, crowded FROM actions_pick_due(busy, now_at, due_limit, share) p;
    drained := cardinality(shards) - cardinality(crowded);
    due := actions_hold(due, open_endpoints);
    SELECT d.undecided, d.decided INTO due, went_on FROM actions_decide(due, now_at) d;
    SELECT s.others, s.dealt INTO due, dealt FROM actions_split(due, now_at) s;
    went_on := went_on + dealt;
    SELECT * INTO windows FROM actions_windows(due, now_at, zone, zone_field);
    went_on := went_on + cardinality(due) - cardinality(windows.allowed);
    due := windows.allowed;
    SELECT c.allowed, c.beyond INTO due, kept_back FROM actions_capped(due, now_at) c;
    went_on := went_on + kept_back;
    SELECT * INTO ready FROM actions_rank(due, targets, capacities, claim_limit);
    SELECT *
    INTO granted
    FROM actions_charge(ready.ids, ready.orgs, ready.tags, org_interval, org_burst, org_concurrency,
                        all_interval, all_burst, all_concurrency);
    deferred := cardinality(ready.ids) - cardinality(granted.ids);
    IF granted.ids <> '{}' THEN
        RETURN QUERY SELECT t.*, went_on, deferred, drained, (extract(epoch FROM w.closes - now_at) * 1000)::int8
                     FROM actions_take(granted.ids, granted.charged_at, me, lease_ms, now_at) t
                     LEFT JOIN unnest(windows.windowed, windows.closes) AS w (id, closes) ON w.id = t.action_id;
    ELSE
        -- No row was charged and no endpoint will be called. If the server crashes, the next round decides again what
        -- that takes back.
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN NEXT;
    END IF;
END
$$;
