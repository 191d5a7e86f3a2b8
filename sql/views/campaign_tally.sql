-- What rules counted (sql/lane/rules), exact at every moment: totals and deltas in one snapshot. at: NULL: not by time.
CREATE OR REPLACE VIEW campaign_tally AS
SELECT c.campaign_id, c.kind, NULLIF(c.at, '-infinity') AS at, c.key, c.status, COALESCE(p.name, c.status::text) AS status_name,
       sum(c.messages)::bigint AS messages, sum(c.events)::bigint AS events
FROM (
    SELECT t.campaign_id, t.kind, t.at, t.key, t.status, t.messages, t.events FROM campaign_tally_total t
    UNION ALL
    SELECT a.campaign_id, d.kind, a.at, a.key, a.status, a.messages, a.events
    FROM campaign_tally_delta d, unnest(d.campaign_id, d.at, d.key, d.status, d.messages, d.events) AS a (campaign_id, at, key, status, messages, events)
) c
LEFT JOIN message_status_priority p ON p.code = c.status
GROUP BY c.campaign_id, c.kind, c.at, c.key, c.status, p.name
HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0;
