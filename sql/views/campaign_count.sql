-- Counts of campaigns: totals and deltas as they are stored, several rows for a campaign and status; their sums are
-- exact at every moment. A condition on campaign_id reaches the tables, and their rows come in the order of the
-- totals' key without a sort.
CREATE OR REPLACE VIEW campaign_count AS
SELECT t.campaign_id, t.status, t.messages, t.events
FROM campaign_funnel_total t
UNION ALL
SELECT a.campaign_id, a.status, a.messages, a.events
FROM counter_delta d, unnest(d.campaign_id, d.status, d.messages, d.events) AS a (campaign_id, status, messages, events)
WHERE d.kind = 'funnel';

-- The organisation of a campaign's messages: org_id is NULL where it has messages of several organisations or of
-- none.
CREATE OR REPLACE VIEW campaign_org AS
SELECT w.campaign_id, CASE WHEN min(w.org_id) = max(w.org_id) THEN NULLIF(min(w.org_id), '') END AS org_id
FROM campaign_organisation w
GROUP BY w.campaign_id;
