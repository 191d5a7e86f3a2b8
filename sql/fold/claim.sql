-- Groups that are due become publications, after gather in its transaction. $1 int4 shard, $2 int4 most groups to
-- examine. A group that has had events since only gets another due_at. Numbers in the outbox are dense: they are taken
-- from the shard's row, which fence.sql has locked. "Now" is the time up to which all events are in groups. Returns
-- examined, claimed (for Kafka).
WITH
clock AS MATERIALIZED (
    SELECT fold_as_of() AS at
),
due AS MATERIALIZED (
    SELECT g.rule, g.key, g.number, g.events, g.first_at, g.last_at, g.collected, r."window", r.max_hold, r.funnel,
           r.destination, r.message_key, r.source, r.target,
           CASE WHEN r.removed_at IS NOT NULL THEN 'removed'
                WHEN g.events >= r.max_events THEN 'full'
                WHEN g.last_at + r."window" <= c.at THEN 'quiet'
                WHEN g.first_at + r.max_hold <= c.at THEN 'hold' END AS cause
    FROM (SELECT * FROM fold_group f
          -- The comparison with now() is for the planner, which then knows how few groups are due.
          WHERE f.lane = $1::int4 AND f.due_at <= (SELECT w.at FROM clock w) AND f.due_at <= now()
          ORDER BY f.due_at LIMIT $2::int4) g
    CROSS JOIN clock c
    JOIN fold_rule r ON r.rule = g.rule
),
put_off AS (
    UPDATE fold_group g
    SET due_at = LEAST(d.last_at + d."window", d.first_at + d.max_hold)
    FROM due d
    WHERE g.rule = d.rule AND g.key = d.key AND d.cause IS NULL
),
-- Another publisher may have added to the group since it was examined: then it is left for the next turn.
closed AS (
    UPDATE fold_group g
    SET events = 0, due_at = NULL, collected = '{}', number = g.number + 1, published_at = now(), first_at = NULL,
        last_at = NULL
    FROM due d
    WHERE g.rule = d.rule AND g.key = d.key AND d.cause IS NOT NULL AND g.events = d.events AND g.number = d.number
    RETURNING d.*
),
published AS MATERIALIZED (
    SELECT n.rule, n.key, n.first_at, n.cause, n.destination, n.message_key, n.target,
           fold_id(n.rule, n.key, n.number) AS id,
           (jsonb_build_object('id', fold_id(n.rule, n.key, n.number), 'rule', n.rule, 'group', n.key::jsonb,
                               'number', n.number, 'first_at', fold_time(n.first_at), 'last_at', fold_time(n.last_at),
                               'events', n.events, 'cause', n.cause,
                               'collected', COALESCE(n.collected -> 'v', '{}') - '' - 'traces')
            || CASE WHEN COALESCE(n.collected -> 'o', '{}') <> '{}'
                    THEN jsonb_build_object('overflow', n.collected -> 'o') ELSE '{}' END
            || CASE WHEN n.source = 'transitions'
                    THEN jsonb_build_object('statuses', COALESCE(n.collected -> 'v' -> '', '{}')) ELSE '{}' END
            || CASE WHEN n.collected -> 'v' ? 'traces'
                    THEN jsonb_build_object('traces', n.collected -> 'v' -> 'traces') ELSE '{}' END
            || CASE WHEN n.funnel
                    THEN jsonb_build_object('funnel', (
                        SELECT COALESCE(jsonb_object_agg(f.status_name, f.messages), '{}')
                        FROM campaign_funnel f WHERE f.campaign_id = n.key::jsonb ->> 'campaign_id'))
                    ELSE '{}' END)::text AS payload
    FROM closed n
),
numbered AS MATERIALIZED (
    SELECT t.*, l.next_seq + row_number() OVER (ORDER BY t.first_at, t.rule, t.key) - 1 AS seq
    FROM published t CROSS JOIN (SELECT f.next_seq FROM fold_lane f WHERE f.lane = $1::int4) l
    WHERE t.target = 'kafka'
),
made AS (
    INSERT INTO fold_outbox (lane, seq, rule, id, destination, message_key, payload)
    SELECT $1::int4, n.seq, n.rule, n.id, n.destination,
           CASE n.message_key WHEN 'group' THEN n.key WHEN 'id' THEN n.id ELSE n.key::jsonb ->> n.message_key END,
           n.payload
    FROM numbered n
),
called AS (
    INSERT INTO fold_call (id, lane, rule, payload)
    SELECT t.id, $1::int4, t.rule, t.payload FROM published t WHERE t.target = 'webhook'
    ON CONFLICT DO NOTHING
),
lane AS (
    UPDATE fold_lane l SET next_seq = l.next_seq + c.n
    FROM (SELECT count(*) AS n FROM numbered) c
    WHERE l.lane = $1::int4 AND c.n > 0
),
total AS (
    INSERT INTO fold_total AS f (rule, lane, quiet, hold, "full", removed)
    SELECT t.rule, $1::int4, count(*) FILTER (WHERE t.cause = 'quiet'), count(*) FILTER (WHERE t.cause = 'hold'),
           count(*) FILTER (WHERE t.cause = 'full'), count(*) FILTER (WHERE t.cause = 'removed')
    FROM published t
    GROUP BY t.rule
    ON CONFLICT (rule, lane) DO UPDATE
    SET quiet = f.quiet + EXCLUDED.quiet, hold = f.hold + EXCLUDED.hold, "full" = f."full" + EXCLUDED."full",
        removed = f.removed + EXCLUDED.removed
)
SELECT (SELECT count(*) FROM due) AS examined, (SELECT count(*) FROM numbered) AS claimed;
