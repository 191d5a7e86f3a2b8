-- What rules counted (sql/lane/rules), exact at every moment: totals and deltas in one snapshot. at: NULL: not by time.
CREATE OR REPLACE VIEW campaign_tally AS
SELECT c.campaign_id, c.kind, NULLIF(c.at, '-infinity') AS at, c.key, c.status, COALESCE(p.name, c.status::text) AS status_name,
       sum(c.messages)::bigint AS messages, sum(c.events)::bigint AS events
FROM (
    SELECT t.campaign_id, t.kind, t.at, t.key, t.status, t.messages, t.events FROM campaign_tally_total t
    UNION ALL
    SELECT a.campaign_id, d.kind, a.at, a.key, a.status, a.messages, a.events
    FROM campaign_tally_delta d, unnest(d.campaign_id, d.at, d.key, d.status, d.messages, d.events) AS a (campaign_id, at, key, status, messages, events)
    UNION ALL
    SELECT a.campaign_id, 'hour', to_timestamp(a.minute / 60 * 3600), '', a.status, a.messages, a.events
    FROM campaign_funnel_delta d, unnest(d.campaign_id, d.minute, d.status, d.messages, d.events) AS a (campaign_id, minute, status, messages, events)
    WHERE d.minute IS NOT NULL
    UNION ALL
    SELECT a.campaign_id, 'minute', to_timestamp(a.minute * 60), '', a.status, a.messages, a.events
    FROM campaign_funnel_delta d, unnest(d.campaign_id, d.minute, d.status, d.messages, d.events) AS a (campaign_id, minute, status, messages, events)
    WHERE d.minute IS NOT NULL AND a.minute > date_part('epoch', now()) / 60 - 1440
) c
LEFT JOIN message_status_priority p ON p.code = c.status
GROUP BY c.campaign_id, c.kind, c.at, c.key, c.status, p.name
HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0;
