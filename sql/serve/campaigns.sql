-- GET /campaigns: $1 text organisation (NULL: all), $2 text part of the id, $3 text order, $4 text key of the last one shown, $5 int4 most.
-- One pass over the counters; ranks fall, and ids break ties, so a key leads to the same place again. The key is rank:id.
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
counted AS (
    SELECT r.campaign_id, max(r.changed_at) AS changed_at,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = k.targeted), 0)::int8 AS targeted,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = k.sent), 0)::int8 AS sent,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = k.delivered), 0)::int8 AS delivered,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = k.opened), 0)::int8 AS opened,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = k.clicked), 0)::int8 AS clicked,
           COALESCE(sum(r.messages) FILTER (WHERE r.status = ANY (k.failed)), 0)::int8 AS failed
    FROM (SELECT t.campaign_id, t.status, t.messages, t.changed_at FROM campaign_funnel_total t
          UNION ALL
          SELECT a.campaign_id, a.status, a.messages, now()
          FROM campaign_funnel_delta d, unnest(d.campaign_id, d.status, d.messages) AS a (campaign_id, status, messages)) r
    CROSS JOIN codes k
    WHERE r.campaign_id <> '' AND ($2::text IS NULL OR position(lower($2::text) IN lower(r.campaign_id)) > 0)
    GROUP BY r.campaign_id
),
ranked AS (
    SELECT c.*, c.delivered::float8 / NULLIF(c.sent, 0) AS rate,
           CASE $3::text WHEN 'rate' THEN COALESCE(-c.delivered::float8 / NULLIF(c.sent, 0), '-infinity')
                         WHEN 'problems' THEN c.failed::float8
                         ELSE floor(extract(epoch FROM c.changed_at) * 1000000)::float8 END AS rank
    FROM counted c
    WHERE $1::text IS NULL OR c.campaign_id IN (SELECT o.campaign_id FROM campaign_org o WHERE o.org_id = $1::text)
),
page AS (
    SELECT r.* FROM ranked r
    WHERE $4::text IS NULL OR r.rank < split_part($4::text, ':', 1)::float8
       OR (r.rank = split_part($4::text, ':', 1)::float8
           AND r.campaign_id > substr($4::text, strpos($4::text, ':') + 1) COLLATE "C")
    ORDER BY r.rank DESC, r.campaign_id
    LIMIT $5::int4
)
SELECT json_build_object(
    'campaigns', COALESCE(json_agg(json_build_object(
        'campaign_id', p.campaign_id, 'org_id', o.org_id, 'targeted', p.targeted, 'sent', p.sent, 'delivered', p.delivered,
        'opened', p.opened, 'clicked', p.clicked, 'failed', p.failed, 'delivery_rate', p.rate,
        'changed_at', to_char(p.changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'provisional', NULL)
        ORDER BY p.rank DESC, p.campaign_id), '[]'),
    'next', CASE WHEN count(*) = $5::int4 THEN (array_agg(p.rank::text || ':' || p.campaign_id ORDER BY p.rank, p.campaign_id DESC))[1] END,
    'as_of', (SELECT to_char(to_timestamp(max(c.anchor_timestamp) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM consumer_progress c),
    'behind_s', NULL)::text AS body
FROM page p
LEFT JOIN campaign_org o ON o.campaign_id = p.campaign_id;
