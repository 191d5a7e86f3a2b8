-- GET /campaigns. Parameters: $1 text organisation (NULL: all), $2 text part of the id or name (NULL: any), $3 text
-- order, $4 text key of the last one shown, $5 int4 most, $6 text true: the order is turned round. Names: $7, $8 and
-- $9 text[] ids, names and days of campaigns that have a name (NULL: none are known).
--
-- The page's campaigns come first by their rank, then the counters of those. Only the orders by counters read all
-- totals, and only the few statuses that make a rank. `match` is by how well $2 fits, then like `changed`. Tiers,
-- labels and ids rise and ranks fall, so a key of all four leads to the same place again. Campaigns without a rate or
-- day come last either way.
WITH codes AS MATERIALIZED (
    SELECT max(k.code) FILTER (WHERE k.name = 'TARGETED') AS targeted,
           max(k.code) FILTER (WHERE k.name = 'SENT') AS sent,
           max(k.code) FILTER (WHERE k.name = 'DELIVERED') AS delivered,
           max(k.code) FILTER (WHERE k.name = 'OPENED') AS opened,
           max(k.code) FILTER (WHERE k.name = 'CLICKED') AS clicked,
           array_agg(k.code) FILTER (WHERE k.terminal AND k.name <> 'SKIPPED' AND NOT EXISTS (
               SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
               WHERE s.code = k.code AND a.name = 'DELIVERED')) AS failed
    FROM message_status_priority k
    WHERE k.flag_bit IS NULL
),
fresh AS MATERIALIZED (
    SELECT a.campaign_id, a.status, a.messages
    FROM counter_delta d, unnest(d.campaign_id, d.status, d.messages) AS a (campaign_id, status, messages)
    WHERE d.kind = 'funnel'
),
changed AS MATERIALIZED (
    -- Campaigns that no roll-up has dated yet are newer than all others, and have one rank, so that a later page
    -- begins where this one ended. Small letters cost much, so only searches and the order by name have them.
    SELECT c.campaign_id, c.changed_at, c.is_fresh, n.name, n.day, l.id AS low_id, l.name AS low_name
    FROM (
        SELECT t.campaign_id, max(t.changed_at) AS changed_at, bool_or(t.is_fresh) AS is_fresh
        FROM (SELECT r.campaign_id, r.changed_at, false AS is_fresh FROM campaign_changed r
              UNION ALL
              SELECT f.campaign_id, now(), true FROM fresh f) t
        GROUP BY t.campaign_id
    ) c
    LEFT JOIN unnest($7::text[], $8::text[], $9::text[]) AS n (campaign_id, name, day) ON n.campaign_id = c.campaign_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN u.wanted THEN lower(c.campaign_id COLLATE "default") END AS id,
               CASE WHEN u.wanted THEN lower(n.name COLLATE "default") END AS name
        FROM (SELECT $2::text IS NOT NULL OR $3::text = 'name' AS wanted) u
        OFFSET 0
    ) l
    WHERE c.campaign_id <> ''
      AND ($2::text IS NULL OR position(lower($2::text) IN l.id) > 0 OR position(lower($2::text) IN l.name) > 0)
      AND ($1::text IS NULL OR c.campaign_id IN (SELECT o.campaign_id FROM campaign_org o WHERE o.org_id = $1::text))
),
wanted AS MATERIALIZED (
    -- Statuses that the order reads. It counts `main`, which is the numerator of the rate.
    SELECT k.sent, CASE $3::text
               WHEN 'problems' THEN k.failed WHEN 'targeted' THEN ARRAY[k.targeted] WHEN 'sent' THEN ARRAY[k.sent]
               WHEN 'opened' THEN ARRAY[k.opened]
               WHEN 'clicked' THEN ARRAY[k.clicked]
               ELSE ARRAY[k.delivered] END AS main
    FROM codes k
    WHERE $3::text NOT IN ('match', 'changed', 'name', 'date')
),
counted AS (
    SELECT t.campaign_id, COALESCE(sum(t.messages::float8) FILTER (WHERE t.status = ANY (w.main)), 0) AS messages,
           NULLIF(sum(t.messages::float8) FILTER (WHERE t.status = w.sent), 0) AS sent
    FROM wanted w
    CROSS JOIN (SELECT r.campaign_id, r.status, r.messages FROM campaign_funnel_total r
                UNION ALL
                SELECT f.campaign_id, f.status, f.messages FROM fresh f) t
    WHERE t.status = ANY (w.main) OR (t.status = w.sent AND $3::text = 'rate')
    GROUP BY t.campaign_id
),
ranked AS (
    SELECT c.campaign_id,
           CASE WHEN $2::text IS NULL OR $3::text <> 'match' OR lower($2::text) IN (c.low_id, c.low_name) THEN 0
                WHEN starts_with(c.low_id, lower($2::text)) OR starts_with(c.low_name, lower($2::text)) THEN 1
                ELSE 2 END AS tier,
           COALESCE(CASE WHEN $6::text = 'true' THEN -v.value ELSE v.value END, '-infinity') AS rank,
           CASE WHEN $3::text = 'name' THEN left(COALESCE(c.low_name, c.low_id), 60) ELSE '' END AS label
    FROM changed c
    LEFT JOIN counted r ON r.campaign_id = c.campaign_id
    CROSS JOIN LATERAL (SELECT CASE
        WHEN $3::text IN ('match', 'changed') AND c.is_fresh THEN 1e18::float8
        WHEN $3::text IN ('match', 'changed') THEN floor(extract(epoch FROM c.changed_at) * 1000000)::float8
        WHEN $3::text = 'name' THEN 0
        WHEN $3::text = 'date' THEN replace(c.day, '-', '')::float8
        WHEN $3::text = 'rate' THEN -r.messages / r.sent
        ELSE COALESCE(r.messages, 0) END AS value) v
),
page AS MATERIALIZED (
    SELECT r.*
    FROM ranked r
    CROSS JOIN (
        -- tier:rank:size of the label:label and id
        SELECT s.parts[1]::int4 AS tier, s.parts[2]::float8 AS rank, left(s.parts[4], s.parts[3]::int4) AS label,
               substr(s.parts[4], s.parts[3]::int4 + 1) AS campaign_id
        FROM (SELECT regexp_match($4::text, '^([^:]*):([^:]*):([^:]*):(.*)$') AS parts) s
    ) k
    WHERE $4::text IS NULL OR r.tier > k.tier OR (r.tier = k.tier AND (r.rank < k.rank OR (r.rank = k.rank AND (
        CASE WHEN $6::text = 'true' THEN r.label < k.label ELSE r.label > k.label END
        OR (r.label = k.label AND r.campaign_id > k.campaign_id COLLATE "C")))))
    ORDER BY r.tier, r.rank DESC, CASE WHEN $6::text = 'true' THEN r.label END DESC, r.label, r.campaign_id
    LIMIT $5::int4
),
shown AS (
    SELECT row_number() OVER (ORDER BY p.tier, p.rank DESC, CASE WHEN $6::text = 'true' THEN p.label END DESC, p.label,
                                       p.campaign_id) AS n,
           concat_ws(':', p.tier, p.rank, length(p.label), p.label || p.campaign_id) AS key,
           p.campaign_id, c.changed_at, c.name, c.day, m.*,
           (SELECT o.org_id FROM campaign_org o WHERE o.campaign_id = p.campaign_id) AS org_id
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
    ) m
)
SELECT json_build_object(
    'campaigns', COALESCE(json_agg(json_build_object(
        'campaign_id', s.campaign_id, 'org_id', s.org_id, 'name', s.name, 'date', s.day, 'targeted', s.targeted,
        'sent', s.sent, 'delivered', s.delivered, 'opened', s.opened, 'clicked', s.clicked, 'failed', s.failed,
        'delivery_rate', s.delivered::float8 / NULLIF(s.sent, 0),
        'changed_at', to_char(s.changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'provisional', NULL)
        ORDER BY s.n), '[]'),
    'next', CASE WHEN count(*) = $5::int4 THEN (array_agg(s.key ORDER BY s.n DESC))[1] END,
    'as_of', (SELECT to_char(max(c.newest_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM partition_position c),
    'behind_s', (SELECT b.behind_s FROM counters_behind b))::text AS body
FROM shown s;
