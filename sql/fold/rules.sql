-- The rules of the configuration, $1 text: a JSON array of them. Rules that are not among them are removed: their open
-- groups are due at once. A removed rule that is among them again goes on. Groups and calls wait no longer than today's
-- rule says: a window or the longest wait may have been made shorter, and the server's clock may have gone back.
-- Returns removed (rules), open (their open groups), unknown (columns that the inbox does not have; NULL: none).
WITH
given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1::text::jsonb) AS r (
        rule text, source text, topic text, match jsonb, by_campaign boolean, by_org boolean, by_status boolean,
        by_prev_status boolean, by_flags boolean, key_columns text[], columns text[], kinds jsonb, fields jsonb,
        "window" interval, max_hold interval, max_events bigint, max_values integer, funnel boolean, target text,
        destination text, message_key text, longest_wait interval)
),
stored AS (
    INSERT INTO fold_rule AS s (rule, source, topic, match, by_campaign, by_org,
                                by_status, by_prev_status, by_flags, key_columns,
                                columns, kinds, fields, "window", max_hold, max_events, max_values, funnel, target,
                                destination, message_key)
    SELECT g.rule, g.source, g.topic, g.match, g.by_campaign, g.by_org,
           g.by_status, g.by_prev_status, g.by_flags, g.key_columns,
           g.columns, g.kinds, g.fields, g."window", g.max_hold, g.max_events,
           g.max_values, g.funnel, g.target, g.destination, g.message_key
    FROM given g
    ORDER BY g.rule
    ON CONFLICT (rule) DO UPDATE
    SET source = EXCLUDED.source, topic = EXCLUDED.topic, match = EXCLUDED.match, by_campaign = EXCLUDED.by_campaign,
        by_org = EXCLUDED.by_org, by_status = EXCLUDED.by_status, by_prev_status = EXCLUDED.by_prev_status,
        by_flags = EXCLUDED.by_flags, key_columns = EXCLUDED.key_columns,
        columns = EXCLUDED.columns, kinds = EXCLUDED.kinds, fields = EXCLUDED.fields,
        "window" = EXCLUDED."window", max_hold = EXCLUDED.max_hold, max_events = EXCLUDED.max_events,
        max_values = EXCLUDED.max_values, funnel = EXCLUDED.funnel, target = EXCLUDED.target,
        destination = EXCLUDED.destination, message_key = EXCLUDED.message_key, removed_at = NULL
),
removed AS (
    UPDATE fold_rule r SET removed_at = now()
    WHERE r.removed_at IS NULL AND r.rule NOT IN (SELECT g.rule FROM given g)
    RETURNING r.rule
),
-- Calls that were given up only because their target was not known.
revived AS (
    UPDATE fold_call c SET failed_at = NULL, retry_at = now()
    FROM given g
    WHERE c.rule = g.rule AND g.target = 'webhook' AND c.failed_at IS NOT NULL
      AND c.error = 'its rule is no longer configured'
),
sooner AS (
    UPDATE fold_group g
    SET first_at = LEAST(g.first_at, now()), last_at = LEAST(g.last_at, now()), due_at = l.latest
    FROM (SELECT f.rule, f.key,
                 CASE WHEN f.events >= r.max_events THEN now()
                      ELSE LEAST(LEAST(f.last_at, now()) + r."window", LEAST(f.first_at, now()) + r.max_hold)
                 END AS latest
          FROM fold_group f JOIN given r ON r.rule = f.rule
          WHERE f.due_at IS NOT NULL) l
    WHERE g.rule = l.rule AND g.key = l.key AND g.due_at > l.latest
),
called AS (
    UPDATE fold_call c SET retry_at = now() + r.longest_wait
    FROM given r
    WHERE c.rule = r.rule AND c.failed_at IS NULL AND c.retry_at > now() + r.longest_wait
),
due AS (
    UPDATE fold_group g SET due_at = now()
    FROM removed r
    WHERE g.rule = r.rule AND g.due_at IS NOT NULL
    RETURNING 1
)
SELECT (SELECT count(*) FROM removed) AS removed, (SELECT count(*) FROM due) AS open,
       (SELECT string_agg(DISTINCT format('%s: inbox.%s', g.rule, w.name), ', ')
        FROM given g, unnest(g.columns) AS w (name)
        WHERE NOT EXISTS (SELECT FROM pg_attribute a
                          WHERE a.attrelid = 'message_inbox'::regclass AND a.attname = w.name AND a.attnum > 0
                            AND NOT a.attisdropped)) AS unknown;
