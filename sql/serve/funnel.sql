-- GET /campaigns/{campaign}/funnel, from the counters alone. Returns body and n. No row: no such campaign, or one of
-- another organisation. Parameters: $1 text organisation (NULL: all), $2 text campaign, $4 text answer of pending
-- (NULL: it was not asked), $5 text name and $6 text day of the campaign (NULL: not known). Parameter $3 text:
-- reason, variant, channel, gateway, time_to_deliver or time_to_open: with the funnel by this, too (NULL: without).
-- Columns customers and logical (counters.groups): as the last roll-up left them; NULL: the campaign has none.
--
-- The stream asks for the funnels of many viewers at once, with the variable many = many. Then $2 is JSON, [{"n": …,
-- "campaign_id": …, "organisation": …, "name": …, "day": …}, …], and the other parameters are NULL.
--
-- Campaigns of another organisation are dropped at once: they cost as much as campaigns that are not there.
WITH wanted AS MATERIALIZED (
    SELECT a.n, a.campaign_id, a.name, a.day, o.org_id
    FROM (
        SELECT 0 AS n, $2::text AS campaign_id, $1::text AS organisation, $5::text AS name, $6::text AS day
        WHERE :'many' <> 'many'
        UNION ALL
        SELECT w.n, w.campaign_id, w.organisation, w.name, w.day
        FROM jsonb_to_recordset(CASE WHEN :'many' = 'many' THEN $2::text::jsonb END)
             AS w (n int4, campaign_id text, organisation text, name text, day text)
        WHERE :'many' = 'many'
    ) a
    -- It is looked up by its key, not joined.
    CROSS JOIN LATERAL (SELECT (SELECT g.org_id FROM campaign_org g WHERE g.campaign_id = a.campaign_id) AS org_id
                        OFFSET 0) o
    WHERE a.organisation IS NULL OR o.org_id = a.organisation
),
counted AS MATERIALIZED (
    SELECT r.campaign_id, r.status, sum(r.messages)::int8 AS messages, sum(r.events)::int8 AS events
    FROM campaign_count r
    WHERE r.campaign_id = ANY (ARRAY(SELECT w.campaign_id FROM wanted w))
    GROUP BY r.campaign_id, r.status
),
tallied AS MATERIALIZED (
    SELECT t.campaign_id, t.kind, t.status, sum(t.messages)::int8 AS messages, sum(t.events)::int8 AS events
    FROM campaign_tally t
    WHERE t.campaign_id = ANY (ARRAY(SELECT w.campaign_id FROM wanted w))
      AND t.kind IN ('customer', 'logical', 'duplicate')
    GROUP BY t.campaign_id, t.kind, t.status
),
campaign AS MATERIALIZED (
    SELECT c.campaign_id, k.customers, k.logical, COALESCE(k.duplicates, 0) AS duplicates
    FROM (SELECT DISTINCT d.campaign_id FROM counted d) c
    LEFT JOIN (SELECT t.campaign_id, bool_or(t.kind = 'customer') AS customers, bool_or(t.kind = 'logical') AS logical,
                      sum(t.events) FILTER (WHERE t.kind = 'duplicate')::int8 AS duplicates
               FROM tallied t GROUP BY t.campaign_id) k ON k.campaign_id = c.campaign_id
),
below AS (
    SELECT d.campaign_id, x.parent, sum(d.messages)::int8 AS messages
    FROM counted d JOIN message_status_priority x ON x.code = d.status
    GROUP BY d.campaign_id, x.parent
),
placed AS MATERIALIZED (
    SELECT g.campaign_id, k.code, k.name, p.name AS parent, k.terminal, k.flag_bit IS NOT NULL AS is_flag,
           COALESCE(c.messages, 0) AS messages, COALESCE(c.events, 0) AS events,
           CASE WHEN g.customers THEN COALESCE(u.messages, 0) END AS customers,
           CASE WHEN g.logical THEN COALESCE(l.messages, 0) END AS logical,
           COALESCE(c.messages, 0) - COALESCE(b.messages, 0) AS standing,
           CASE WHEN EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                             WHERE s.code = k.code AND a.name = 'DELIVERED') THEN 'success'
                WHEN k.terminal OR k.name = 'SUBMIT_FAILED' THEN 'failure' ELSE 'open' END AS kind
    FROM campaign g
    CROSS JOIN message_status_priority k
    LEFT JOIN message_status_priority p ON p.code = k.parent
    LEFT JOIN counted c ON c.campaign_id = g.campaign_id AND c.status = k.code
    LEFT JOIN below b ON b.campaign_id = g.campaign_id AND b.parent = k.code
    LEFT JOIN tallied u ON u.campaign_id = g.campaign_id AND u.status = k.code AND u.kind = 'customer'
    LEFT JOIN tallied l ON l.campaign_id = g.campaign_id AND l.status = k.code AND l.kind = 'logical'
),
rates AS (
    SELECT f.campaign_id, k.kpi, sum(m.n) FILTER (WHERE k.part = 'numerator') AS numerator,
           sum(m.n) FILTER (WHERE k.part = 'denominator') AS denominator,
           string_agg(f.name, '+' ORDER BY f.code) FILTER (WHERE k.part = 'numerator') AS above,
           string_agg(f.name, '+' ORDER BY f.code) FILTER (WHERE k.part = 'denominator') AS below
    FROM kpi_part k
    JOIN placed f ON f.code = k.status AND (k.measure <> 'customers' OR f.customers IS NOT NULL)
    CROSS JOIN LATERAL (
        SELECT CASE k.measure WHEN 'messages' THEN f.messages WHEN 'events' THEN GREATEST(f.events, f.messages)
                              WHEN 'customers' THEN f.customers ELSE f.standing END AS n) m
    GROUP BY f.campaign_id, k.kpi
),
shown AS (
    SELECT s.campaign_id,
           json_agg(json_build_object('code', s.code, 'name', s.name, 'parent', s.parent, 'messages', s.messages,
                                      'events', s.events, 'current', s.standing, 'customers', s.customers,
                                      'logical', s.logical, 'terminal', s.terminal, 'kind', s.kind)
                    ORDER BY s.code)
               FILTER (WHERE NOT s.is_flag) AS statuses,
           json_agg(json_build_object('code', s.code, 'name', s.name, 'messages', s.messages,
                                      'events', s.events, 'customers', s.customers, 'logical', s.logical)
                    ORDER BY s.code)
               FILTER (WHERE s.is_flag) AS flags
    FROM placed s
    GROUP BY s.campaign_id
),
rated AS (
    SELECT r.campaign_id,
           json_agg(json_build_object('name', CASE r.kpi WHEN 'delivered_per_sent' THEN 'delivery_rate' ELSE r.kpi END,
                                      'value', r.numerator::float8 / NULLIF(r.denominator, 0),
                                      'numerator', r.above, 'denominator', r.below,
                                      'label', replace(replace(r.kpi, '_per_', ' of '), '_', ' '))
                    ORDER BY r.kpi) AS rates
    FROM rates r
    WHERE r.above IS NOT NULL AND r.below IS NOT NULL
    GROUP BY r.campaign_id
)
SELECT json_build_object(
    'campaign_id', g.campaign_id, 'org_id', w.org_id, 'name', w.name, 'date', w.day,
    'as_of', (SELECT to_char(max(c.newest_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM partition_position c),
    'behind_s', (SELECT b.behind_s FROM counters_behind b),
    'pending', $4::text::json,
    'statuses', s.statuses, 'flags', COALESCE(s.flags, '[]'), 'rates', COALESCE(r.rates, '[]'),
    'by', (SELECT COALESCE(json_agg(json_build_object('key', b.key, 'statuses', b.statuses)
                                    ORDER BY b.messages DESC, b.key), '[]')
           FROM (SELECT t.key, max(t.messages) AS messages,
                        json_agg(json_build_object('code', t.status, 'name', t.status_name,
                                                   'messages', t.messages, 'events', t.events)
                                 ORDER BY t.status) AS statuses
                 FROM campaign_tally t
                 WHERE t.campaign_id = $2::text
                   AND t.kind = CASE WHEN $3::text IN ('reason', 'time_to_deliver', 'time_to_open') THEN $3::text
                                     ELSE 'by_' || $3::text END
                 GROUP BY t.key) b WHERE $3::text IS NOT NULL),
    'duplicates', g.duplicates,
    -- The last recount by receiptd maintain: null if there was none.
    'proof', (SELECT json_build_object('at', to_char(p.proven_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                                       'cells_off', p.drift)
              FROM campaign_proof p WHERE p.campaign_id = g.campaign_id))::text AS body, w.n
FROM wanted w
JOIN campaign g ON g.campaign_id = w.campaign_id
JOIN shown s ON s.campaign_id = w.campaign_id
LEFT JOIN rated r ON r.campaign_id = w.campaign_id;
