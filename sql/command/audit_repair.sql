-- Adds what is missing in one campaign's counters as one delta row: recount and difference in one statement. After
-- audit_lock.sql. $1 text campaign, $2 bool as for audit_campaign.sql. Returns repaired (statuses that were off).
WITH
missing AS MATERIALIZED (
    SELECT s.status, s.rows - s.counter AS n FROM campaign_recount(ARRAY[$1::text], $2::bool) s WHERE s.rows <> s.counter
),
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg($1::text), array_agg(m.status), array_agg(m.n), array_agg(0::int8)
    FROM missing m
    HAVING count(*) > 0
)
SELECT count(*) AS repaired FROM missing;
