-- GET /campaigns: $1 text organisation (NULL: all), $2 text part of the id, $3 text order, $4 text key of the last one shown, $5 int4 most.
-- First the page's campaigns by their rank, then the counters of those. Only the orders by counters read all totals, and of them the few
-- statuses that make a rank. Ranks fall, and ids break ties, so a key (rank:id) leads to the same place again.
WITH codes AS MATERIALIZED (
    SELECT max(k.code) FILTER (WHERE k.name = 'TARGETED') AS targeted, max(k.code) FILTER (WHERE k.name = 'SENT') AS sent,
           max(k.code) FILTER (WHERE k.name = 'DELIVERED') AS delivered, max(k.code) FILTER (WHERE k.name = 'OPENED') AS opened,
           max(k.code) FILTER (WHERE k.name = 'CLICKED') AS clicked,
           array_agg(k.code) FILTER (WHERE k.terminal AND k.name <> 'SKIPPED' AND NOT EXISTS (
               SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
               WHERE s.code = k.code AND a.name = 'DELIVERED')) AS failed
    FROM message_status_priority k
    WHERE k.flag_bit IS NULL
),
fresh AS MATERIALIZED (
    SELECT a.campaign_id, a.status, a.messages
    FROM campaign_funnel_delta d, unnest(d.campaign_id, d.status, d.messages) AS a (campaign_id, status, messages)
),
changed AS MATERIALIZED (
    -- What no roll-up has dated yet is newer than all others, and has one rank, so that a later page begins where this one ended.
    SELECT c.campaign_id, max(c.changed_at) AS changed_at, bool_or(c.is_fresh) AS is_fresh
    FROM (SELECT t.campaign_id, t.changed_at, false AS is_fresh FROM campaign_changed t UNION ALL SELECT f.campaign_id, now(), true FROM fresh f) c
    WHERE c.campaign_id <> '' AND ($2::text IS NULL OR position(lower($2::text) IN lower(c.campaign_id)) > 0)
      AND ($1::text IS NULL OR c.campaign_id IN (SELECT o.campaign_id FROM campaign_org o WHERE o.org_id = $1::text))
    GROUP BY c.campaign_id
),
ranked AS (
    SELECT c.campaign_id, CASE WHEN c.is_fresh THEN 1e18 ELSE floor(extract(epoch FROM c.changed_at) * 1000000) END::float8 AS rank
    FROM changed c
    WHERE $3::text = 'changed'
    UNION ALL
    SELECT c.campaign_id, CASE $3::text WHEN 'problems' THEN COALESCE(r.failed, 0) ELSE COALESCE(-r.delivered / NULLIF(r.sent, 0), '-infinity') END
    FROM changed c
    LEFT JOIN (
        SELECT t.campaign_id, sum(t.messages::float8) FILTER (WHERE t.status = k.sent) AS sent,
               COALESCE(sum(t.messages::float8) FILTER (WHERE t.status = k.delivered), 0) AS delivered,
               sum(t.messages::float8) FILTER (WHERE t.status = ANY (k.failed)) AS failed
        FROM (SELECT t.campaign_id, t.status, t.messages FROM campaign_funnel_total t UNION ALL SELECT f.campaign_id, f.status, f.messages FROM fresh f) t
        JOIN codes k ON CASE $3::text WHEN 'problems' THEN t.status = ANY (k.failed) ELSE t.status IN (k.sent, k.delivered) END
        WHERE $3::text <> 'changed'
        GROUP BY t.campaign_id
    ) r ON r.campaign_id = c.campaign_id
    WHERE $3::text <> 'changed'
),
page AS MATERIALIZED (
    SELECT r.campaign_id, r.rank FROM ranked r
    WHERE $4::text IS NULL OR r.rank < split_part($4::text, ':', 1)::float8
       OR (r.rank = split_part($4::text, ':', 1)::float8 AND r.campaign_id > substr($4::text, strpos($4::text, ':') + 1) COLLATE "C")
    ORDER BY r.rank DESC, r.campaign_id
    LIMIT $5::int4
),
shown AS (
    SELECT p.rank, p.campaign_id, c.changed_at, n.*, (SELECT o.org_id FROM campaign_org o WHERE o.campaign_id = p.campaign_id) AS org_id
    FROM page p
    JOIN changed c ON c.campaign_id = p.campaign_id
    CROSS JOIN LATERAL (
        SELECT COALESCE(sum(r.messages) FILTER (WHERE r.status = k.targeted), 0)::int8 AS targeted,
               COALESCE(sum(r.messages) FILTER (WHERE r.status = k.sent), 0)::int8 AS sent,
               COALESCE(sum(r.messages) FILTER (WHERE r.status = k.delivered), 0)::int8 AS delivered,
               COALESCE(sum(r.messages) FILTER (WHERE r.status = k.opened), 0)::int8 AS opened,
               COALESCE(sum(r.messages) FILTER (WHERE r.status = k.clicked), 0)::int8 AS clicked,
               COALESCE(sum(r.messages) FILTER (WHERE r.status = ANY (k.failed)), 0)::int8 AS failed
        FROM codes k
        CROSS JOIN (SELECT t.status, t.messages FROM campaign_funnel_total t WHERE t.campaign_id = p.campaign_id
                    UNION ALL
                    SELECT f.status, f.messages FROM fresh f WHERE f.campaign_id = p.campaign_id) r
    ) n
)
SELECT json_build_object(
    'campaigns', COALESCE(json_agg(json_build_object(
        'campaign_id', s.campaign_id, 'org_id', s.org_id, 'targeted', s.targeted, 'sent', s.sent, 'delivered', s.delivered,
        'opened', s.opened, 'clicked', s.clicked, 'failed', s.failed, 'delivery_rate', s.delivered::float8 / NULLIF(s.sent, 0),
        'changed_at', to_char(s.changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'provisional', NULL)
        ORDER BY s.rank DESC, s.campaign_id), '[]'),
    'next', CASE WHEN count(*) = $5::int4 THEN (array_agg(s.rank::text || ':' || s.campaign_id ORDER BY s.rank, s.campaign_id DESC))[1] END,
    'as_of', (SELECT to_char(max(c.newest_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM partition_position c),
    'behind_s', (SELECT b.behind_s FROM counters_behind b))::text AS body
FROM shown s;
