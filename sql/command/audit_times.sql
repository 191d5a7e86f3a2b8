-- A histogram of times (counters.times) against the rows of message_time and what was booked as forgotten, in one snapshot; the statement is this file and
-- audit_dimension/90_list.sql or 90_repair.sql. $1 text[] campaigns, $2 bool, not NULL. Variable: kind (in campaign_tally). The rows say what the
-- histogram must say. The kinds of gateways go over all campaigns and have '' for one.
WITH
live AS MATERIALIZED (
    SELECT CASE WHEN :'kind' LIKE 'gateway%' THEN '' ELSE t.campaign_id END AS campaign_id, t.gateway, time_bucket(t.sent_at, t.delivered_at) AS deliver,
           time_bucket(t.delivered_at, t.opened_at) AS open, count(*) AS n
    FROM message_time t
    WHERE :'kind' LIKE 'gateway%' OR t.campaign_id = ANY ($1::text[])
    GROUP BY 1, 2, 3, 4
),
stored AS MATERIALIZED (
    SELECT t.campaign_id, t.kind, t.key, t.status, t.messages
    FROM campaign_tally t
    WHERE t.kind IN (:'kind', 'forgotten_' || :'kind') AND t.campaign_id = ANY (CASE WHEN :'kind' LIKE 'gateway%' THEN ARRAY[''] ELSE $1::text[] END)
),
cell AS MATERIALIZED (
    SELECT c.campaign_id, c.key, c.status, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter
    FROM (SELECT n.campaign AS campaign_id, n.key, n.status, l.n AS rows, 0::int8 AS counter
          FROM live l CROSS JOIN LATERAL time_counts(l.campaign_id, l.gateway, l.deliver, l.open) n WHERE n.kind = :'kind'
          UNION ALL
          SELECT s.campaign_id, s.key, s.status, CASE WHEN s.kind <> :'kind' THEN s.messages ELSE 0 END, CASE WHEN s.kind = :'kind' THEN s.messages ELSE 0 END
          FROM stored s) c
    GROUP BY 1, 2, 3
),
compared AS NOT MATERIALIZED (SELECT * FROM cell),
older AS (SELECT NULL::text AS campaign_id WHERE $2::bool IS NULL)
