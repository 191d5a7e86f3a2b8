-- Recount of several campaigns in one snapshot: $1 text[] campaigns, $2 bool as for audit_campaign.sql. One row for
-- each campaign that has messages or counters: campaign_id, cells (compared), drift (cells that are off).
SELECT s.campaign_id, count(*) AS cells, count(*) FILTER (WHERE s.rows <> s.counter) AS drift
FROM campaign_recount($1::text[], $2::bool) s
GROUP BY s.campaign_id
ORDER BY s.campaign_id;
