-- Messages whose place in the histograms of times is not rolled up yet: those that came to one,
-- less those that left it. deliver, open: buckets.
CREATE OR REPLACE VIEW campaign_time AS
SELECT p.campaign_id,
       substr(p.place, length(split_part(p.place, '/', 1)) + length(split_part(p.place, '/', 2)) + 3) AS gateway,
       NULLIF(split_part(p.place, '/', 1), '')::int2 AS deliver, NULLIF(split_part(p.place, '/', 2), '')::int2 AS open,
       p.n
FROM (SELECT a.campaign_id, a.place, sum(a.messages) AS n
      FROM counter_delta d, unnest(d.campaign_id, d.key, d.messages) AS a (campaign_id, place, messages)
      WHERE d.kind = 'time_place'
      GROUP BY a.campaign_id, a.place) p;

-- Keys of dimensions that wait to be rolled up and will find no place: a campaign has a thousand of each dimension,
-- in the order in which they come (control/rollup.sql). Counts under these keys go to 'other' already now.
CREATE OR REPLACE VIEW dimension_excess AS
WITH fresh AS MATERIALIZED (
    SELECT k.campaign_id, k.kind, k.key,
           row_number() OVER (PARTITION BY k.campaign_id, k.kind ORDER BY k.id, k.key COLLATE "C") AS n
    FROM (SELECT a.campaign_id, d.kind, a.key, min(d.id) AS id
          FROM counter_delta d, unnest(d.campaign_id, d.key) AS a (campaign_id, key)
          WHERE d.kind LIKE 'by\_%' AND a.key <> 'other' GROUP BY 1, 2, 3) k
    WHERE NOT EXISTS (SELECT FROM campaign_tally_total t
                      WHERE t.campaign_id = k.campaign_id AND t.kind = k.kind AND t.at = '-infinity' AND t.key = k.key)
)
SELECT f.campaign_id, f.kind, f.key
FROM fresh f
JOIN (SELECT r.campaign_id, r.kind, 1000 - (SELECT count(DISTINCT t.key) FROM campaign_tally_total t
                                            WHERE t.campaign_id = r.campaign_id
                                              AND t.kind = r.kind
                                              AND t.at = '-infinity'
                                              AND t.key <> 'other') AS n
      FROM (SELECT DISTINCT f.campaign_id, f.kind FROM fresh f) r) places
    ON places.campaign_id = f.campaign_id AND places.kind = f.kind
WHERE f.n > places.n;

-- Counts of the rules (src/core/rules), exact at every moment: totals and deltas in one snapshot. at: NULL: not by
-- time. A count more than an hour ahead of now is from before the server's clock was set back: it is left out, and
-- trimmed.
CREATE OR REPLACE VIEW campaign_tally AS
SELECT c.campaign_id, c.kind, NULLIF(c.at, '-infinity') AS at, c.key,
       c.status, COALESCE(p.name, c.status::text) AS status_name,
       sum(c.messages)::bigint AS messages, sum(c.events)::bigint AS events
FROM (
    SELECT t.campaign_id, t.kind, t.at, t.key, t.status, t.messages, t.events FROM campaign_tally_total t
    UNION ALL
    SELECT a.campaign_id, d.kind, COALESCE(a.at, '-infinity'),
           CASE WHEN d.kind LIKE 'by\_%'
                 AND (a.campaign_id, d.kind, a.key) IN (SELECT e.campaign_id, e.kind, e.key FROM dimension_excess e)
                THEN 'other' ELSE COALESCE(a.key, '') END,
           a.status, a.messages, a.events
    FROM counter_delta d,
         unnest(d.campaign_id, d.at, d.key, d.status, d.messages, d.events)
             AS a (campaign_id, at, key, status, messages, events)
    WHERE d.kind NOT IN ('funnel', 'time_place')
    UNION ALL
    SELECT a.campaign_id, 'hour', date_bin('1 hour', a.at, 'epoch'), '', a.status, a.messages, a.events
    FROM counter_delta d,
         unnest(d.campaign_id, d.at, d.status, d.messages, d.events) AS a (campaign_id, at, status, messages, events)
    WHERE d.kind = 'funnel' AND a.at > '-infinity'
    UNION ALL
    SELECT a.campaign_id, 'minute', a.at, '', a.status, a.messages, a.events
    FROM counter_delta d,
         unnest(d.campaign_id, d.at, d.status, d.messages, d.events) AS a (campaign_id, at, status, messages, events)
    WHERE d.kind = 'funnel' AND a.at > now() - interval '24 hours'
    UNION ALL
    -- As time_counts() and control/rollup.sql: counted before keys become text. The key is that of
    -- time_key(), which not every reader may execute.
    SELECT t.campaign_id, t.kind, '-infinity',
           t.gateway || CASE WHEN t.bucket < 0 THEN 'negative'
                             ELSE round(power(2::float8, t.bucket / 2.0::float8))::int8::text END,
           p.code, t.n, 0
    FROM (SELECT m.campaign_id, 'time_to_deliver' AS kind, 'DELIVERED' AS status,
                 '' AS gateway, m.deliver AS bucket, sum(m.n) AS n
          FROM campaign_time m WHERE m.deliver IS NOT NULL GROUP BY m.campaign_id, m.deliver
          UNION ALL
          SELECT m.campaign_id, 'time_to_open', 'OPENED', '', m.open, sum(m.n)
          FROM campaign_time m
          WHERE m.open IS NOT NULL
          GROUP BY m.campaign_id, m.open
          UNION ALL
          SELECT '', 'gateway_time_to_deliver', 'DELIVERED', m.gateway || '/', m.deliver, sum(m.n)
          FROM campaign_time m
          WHERE m.deliver IS NOT NULL
          GROUP BY m.gateway, m.deliver
          UNION ALL
          SELECT '', 'gateway_time_to_open', 'OPENED', m.gateway || '/', m.open, sum(m.n)
          FROM campaign_time m
          WHERE m.open IS NOT NULL
          GROUP BY m.gateway, m.open) t
    JOIN message_status_priority p ON p.name = t.status
) c
LEFT JOIN message_status_priority p ON p.code = c.status
WHERE c.at <= now() + interval '1 hour'
GROUP BY c.campaign_id, c.kind, c.at, c.key, c.status, p.name
HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0;

-- Clicks by link (counters.links). first_clicks: messages that came to CLICKED by a receipt of this link. link: '': the
-- receipt names none; 'other': a link behind the first thousand of its campaign. Clicks of machines stand apart.
CREATE OR REPLACE VIEW campaign_link AS
SELECT t.campaign_id, t.key AS link,
       COALESCE(sum(t.messages) FILTER (WHERE t.status_name = 'CLICKED'), 0)::int8 AS first_clicks,
       COALESCE(sum(t.events) FILTER (WHERE t.status_name = 'CLICKED'), 0)::int8 AS clicks,
       COALESCE(sum(t.events) FILTER (WHERE t.status_name = 'BOT_CLICK'), 0)::int8 AS bot_clicks
FROM campaign_tally t
WHERE t.kind = 'by_link'
GROUP BY t.campaign_id, t.key;

-- Costs by currency and by the status that the receipts name (counters.cost). A cell of amounts has whole units as
-- messages, and 10^-9 of them as events. currency: '?': the receipt names none; 'invalid': its amount is none.
CREATE OR REPLACE VIEW campaign_cost AS
SELECT t.campaign_id, t.key AS currency, t.status, t.status_name,
       trim_scale(COALESCE(sum(t.messages + t.events * 0.000000001)
                           FILTER (WHERE t.kind = 'cost_amount'), 0)) AS amount,
       COALESCE(sum(t.events) FILTER (WHERE t.kind = 'cost'), 0)::int8 AS receipts
FROM campaign_tally t
WHERE t.kind IN ('cost', 'cost_amount')
GROUP BY t.campaign_id, t.key, t.status, t.status_name;
