-- GET /campaigns/{campaign}/funnel: $1 text organisation (NULL: all), $2 text campaign, $3 text reason, variant, channel, gateway,
-- time_to_deliver or time_to_open: with the funnel by this, too (NULL: without), $4 text true: with pending, $5 text rules of inbox.expiry as in sql/expiry (NULL: there are none). From the
-- counters alone, but pending reads the campaign's rows of the inbox. No row: no such campaign, or one of
-- another organisation. customers and logical (counters.groups): as the last roll-up left them; NULL: the campaign has none.
WITH counted AS MATERIALIZED (
    SELECT r.status, sum(r.messages)::int8 AS messages, sum(r.events)::int8 AS events
    FROM campaign_count r
    WHERE r.campaign_id = $2::text
    GROUP BY r.status
),
grouped AS MATERIALIZED (
    SELECT t.status, sum(t.messages) FILTER (WHERE t.kind = 'customer')::int8 AS customers, sum(t.messages) FILTER (WHERE t.kind = 'logical')::int8 AS logical
    FROM campaign_tally t
    WHERE t.campaign_id = $2::text AND t.kind IN ('customer', 'logical')
    GROUP BY t.status
),
placed AS MATERIALIZED (
    SELECT k.code, k.name, p.name AS parent, k.terminal, k.flag_bit IS NOT NULL AS is_flag,
           COALESCE(c.messages, 0) AS messages, COALESCE(c.events, 0) AS events,
           CASE WHEN EXISTS (SELECT FROM grouped g WHERE g.customers IS NOT NULL) THEN COALESCE(g.customers, 0) END AS customers,
           CASE WHEN EXISTS (SELECT FROM grouped g WHERE g.logical IS NOT NULL) THEN COALESCE(g.logical, 0) END AS logical,
           COALESCE(c.messages, 0) - (SELECT COALESCE(sum(d.messages), 0)::int8 FROM message_status_priority x
                                      JOIN counted d ON d.status = x.code WHERE x.parent = k.code) AS standing,
           CASE WHEN EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                             WHERE s.code = k.code AND a.name = 'DELIVERED') THEN 'success'
                WHEN k.terminal OR k.name = 'SUBMIT_FAILED' THEN 'failure' ELSE 'open' END AS kind
    FROM message_status_priority k
    LEFT JOIN message_status_priority p ON p.code = k.parent
    LEFT JOIN counted c ON c.status = k.code
    LEFT JOIN grouped g ON g.status = k.code
),
rates AS (
    SELECT k.kpi, sum(m.n) FILTER (WHERE k.part = 'numerator') AS numerator, sum(m.n) FILTER (WHERE k.part = 'denominator') AS denominator,
           string_agg(f.name, '+' ORDER BY f.code) FILTER (WHERE k.part = 'numerator') AS above,
           string_agg(f.name, '+' ORDER BY f.code) FILTER (WHERE k.part = 'denominator') AS below
    FROM kpi_part k
    JOIN placed f ON f.code = k.status AND (k.measure <> 'customers' OR f.customers IS NOT NULL)
    CROSS JOIN LATERAL (SELECT CASE k.measure WHEN 'messages' THEN f.messages WHEN 'events' THEN f.events WHEN 'customers' THEN f.customers ELSE f.standing END AS n) m
    GROUP BY k.kpi
),
pending AS (
    -- sql/expiry/pending.sql, of a campaign that has a name: so the index on it serves. Not executed unless it is asked for.
    SELECT json_build_object('messages', count(*),
                             'until', to_char(max(e.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS found
    FROM message_inbox m
    CROSS JOIN LATERAL (
        SELECT r.* FROM jsonb_to_recordset($5::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
        WHERE r."column" IS NULL OR to_jsonb(m) ->> r."column" = r.value ORDER BY r.n LIMIT 1
    ) r
    CROSS JOIN LATERAL (SELECT m.updated_at + NULLIF(r.after, 0) * interval '1 millisecond' AS at) e
    WHERE m.campaign_id = $2::text AND m.status >= r.low AND m.status < r.high AND e.at IS NOT NULL
)
SELECT json_build_object(
    'campaign_id', $2::text, 'org_id', o.org_id,
    'as_of', (SELECT to_char(to_timestamp(max(c.anchor_timestamp) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM consumer_progress c),
    'behind_s', (SELECT b.behind_s FROM counters_behind b),
    'pending', CASE WHEN $4::text = 'true' AND $5::text IS NOT NULL THEN (SELECT p.found FROM pending p) END,
    'statuses', (SELECT json_agg(json_build_object(
                     'code', s.code, 'name', s.name, 'parent', s.parent, 'messages', s.messages, 'events', s.events,
                     'current', s.standing, 'customers', s.customers, 'logical', s.logical, 'terminal', s.terminal, 'kind', s.kind) ORDER BY s.code)
                 FROM placed s WHERE NOT s.is_flag),
    'flags', (SELECT COALESCE(json_agg(json_build_object('code', s.code, 'name', s.name, 'messages', s.messages, 'events', s.events,
                                                         'customers', s.customers, 'logical', s.logical)
                                       ORDER BY s.code), '[]')
              FROM placed s WHERE s.is_flag),
    'rates', (SELECT COALESCE(json_agg(json_build_object(
                  'name', CASE r.kpi WHEN 'delivered_per_sent' THEN 'delivery_rate' ELSE r.kpi END,
                  'value', r.numerator::float8 / NULLIF(r.denominator, 0), 'numerator', r.above, 'denominator', r.below,
                  'label', replace(replace(r.kpi, '_per_', ' of '), '_', ' ')) ORDER BY r.kpi), '[]')
              FROM rates r WHERE r.above IS NOT NULL AND r.below IS NOT NULL),
    'by', (SELECT COALESCE(json_agg(json_build_object('key', b.key, 'statuses', b.statuses) ORDER BY b.messages DESC, b.key), '[]')
           FROM (SELECT t.key, max(t.messages) AS messages, json_agg(json_build_object('code', t.status, 'name', t.status_name, 'messages', t.messages,
                                                                                      'events', t.events) ORDER BY t.status) AS statuses
                 FROM campaign_tally t
                 WHERE t.campaign_id = $2::text AND t.kind = CASE WHEN $3::text IN ('reason', 'time_to_deliver', 'time_to_open') THEN $3::text ELSE 'by_' || $3::text END
                 GROUP BY t.key) b WHERE $3::text IS NOT NULL),
    'duplicates', (SELECT COALESCE(sum(t.events), 0)::int8 FROM campaign_tally t WHERE t.campaign_id = $2::text AND t.kind = 'duplicate'))::text AS body
FROM (SELECT (SELECT w.org_id FROM campaign_org w WHERE w.campaign_id = $2::text) AS org_id) o
WHERE EXISTS (SELECT FROM counted) AND ($1::text IS NULL OR o.org_id = $1::text);
