-- Names of campaigns that have counters, from the platform's view serve.campaigns: $1 int4 most of them, those that
-- changed last. Rows, by campaign_id: campaign_id, org_id (of its messages; NULL: of several organisations, or of
-- none), name, day. Variables: schema, view, whose columns are id, name and, if it has them, date and org_id.
--
-- A row without a name is left out. If a campaign has several rows, the one with the latest day holds, then the name
-- that comes first. With org_id a row is only of a campaign whose messages are of this organisation.
WITH known AS MATERIALIZED (
    SELECT c.campaign_id, (SELECT o.org_id FROM campaign_org o WHERE o.campaign_id = c.campaign_id) AS org_id
    FROM (SELECT t.campaign_id, t.changed_at FROM campaign_changed t
          UNION ALL
          SELECT a.campaign_id, now()
          FROM counter_delta d, unnest(d.campaign_id) AS a (campaign_id)
          WHERE d.kind = 'funnel') c
    GROUP BY c.campaign_id
    ORDER BY max(c.changed_at) DESC
    LIMIT $1::int4
)
SELECT DISTINCT ON (k.campaign_id) k.campaign_id, k.org_id, s.name, s.day
FROM known k
JOIN :"schema".:"view" v ON v.id::text = k.campaign_id
CROSS JOIN LATERAL (SELECT to_jsonb(v) AS said OFFSET 0) r
CROSS JOIN LATERAL (
    SELECT left(NULLIF(btrim(r.said ->> 'name', E' \t\r\n'), ''), 200) AS name,
           substring(r.said ->> 'date' FROM '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])') AS day) s
WHERE s.name IS NOT NULL AND (NOT r.said ? 'org_id' OR r.said ->> 'org_id' IS NOT DISTINCT FROM k.org_id)
ORDER BY k.campaign_id, s.day DESC NULLS LAST, s.name COLLATE "C";
