-- Compares a histogram of times (counters.times) with the rows of the inbox and with what was booked as forgotten, in
-- one snapshot. The statement is this file and audit_dimension/90_list.sql or audit_times_repair.sql. Parameters: $1
-- text[] campaigns, $2 bool: this run has booked messages that went without being booked. Variable: kind (in
-- campaign_tally). Detached messages count as live ones, as in campaign_recount(). The kinds of gateways go over all
-- campaigns and have '' for one. The audit does not find a time that neither a row nor a counter has,
-- since no counter says how many messages should have one. Therefore no time may get lost beside a deletion:
-- test_sql_races.py has batches meet deletions in either order.
WITH
-- Time to deliver counts messages that are delivered alone (src/core/rules/times.c).
delivered AS MATERIALIZED (
    SELECT s.code FROM status_path s JOIN message_status_priority p ON p.code = s.ancestor WHERE p.name = 'DELIVERED'
),
held AS (
    SELECT m.campaign_id,
           time_place(m.first_gateway, CASE WHEN m.status IN (SELECT d.code FROM delivered d) THEN m.first_sent_at END,
                      m.first_delivered_at, m.first_opened_at) AS place,
           count(*) AS n
    FROM message_inbox m
    WHERE :'kind' LIKE 'gateway%'
       OR m.campaign_id = ANY ($1::text[])
       OR ('' = ANY ($1::text[]) AND m.campaign_id IS NULL)
    GROUP BY 1, 2
    UNION ALL
    SELECT d.campaign_id,
           time_place(d.first_gateway, CASE WHEN d.status IN (SELECT c.code FROM delivered c) THEN d.first_sent_at END,
                      d.first_delivered_at, d.first_opened_at),
           count(*)
    FROM inbox_detached d
    WHERE :'kind' LIKE 'gateway%'
       OR d.campaign_id = ANY ($1::text[])
       OR ('' = ANY ($1::text[]) AND d.campaign_id IS NULL)
    GROUP BY 1, 2
    UNION ALL
    SELECT l.campaign_id, l.place, l.messages
    FROM detached_times(CASE WHEN :'kind' NOT LIKE 'gateway%' THEN $1::text[] END) l
),
live AS MATERIALIZED (
    SELECT CASE WHEN :'kind' LIKE 'gateway%' THEN '' ELSE COALESCE(h.campaign_id, '') COLLATE "C" END AS campaign_id,
           h.place COLLATE "C" AS place, sum(h.n)::int8 AS n
    FROM held h WHERE h.place IS NOT NULL GROUP BY 1, 2
),
stored AS MATERIALIZED (
    SELECT t.campaign_id, t.kind, t.key, t.status, t.messages
    FROM campaign_tally t
    WHERE t.kind IN (:'kind', 'forgotten_' || :'kind')
      AND t.campaign_id = ANY (CASE WHEN :'kind' LIKE 'gateway%' THEN ARRAY[''] ELSE $1::text[] END)
),
cell AS MATERIALIZED (
    SELECT c.campaign_id, c.key, c.status, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter
    FROM (SELECT n.campaign AS campaign_id, n.key, n.status, l.n AS rows, 0::int8 AS counter
          FROM live l CROSS JOIN LATERAL time_counts(l.campaign_id, l.place) n WHERE n.kind = :'kind'
          UNION ALL
          SELECT s.campaign_id, s.key, s.status, CASE WHEN s.kind <> :'kind' THEN s.messages ELSE 0 END,
                 CASE WHEN s.kind = :'kind' THEN s.messages ELSE 0 END
          FROM stored s) c
    GROUP BY 1, 2, 3
),
compared AS NOT MATERIALIZED (SELECT * FROM cell),
older AS (SELECT NULL::text AS campaign_id WHERE $2::bool IS NULL)
