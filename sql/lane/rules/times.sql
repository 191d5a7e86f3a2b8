-- Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign and gateway. The times of a message are the least event times of
-- the receipts that name the status, so neither order nor copies change them: it reads receipts, with echoes. A time that gets earlier moves the
-- message's count from one bucket to another: what it was counted under is written by the same UPDATE, never taken from a join (../apply/10_update.sql
-- says why). Rows are locked in the order of their keys.
, timed AS MATERIALIZED (
    SELECT hashtextextended(c.id, 0) AS message, min(c.campaign COLLATE "C") AS campaign, min(c.gateway COLLATE "C") AS gateway,
           min(c.at) FILTER (WHERE c.code = (SELECT p.code FROM message_status_priority p WHERE p.name = 'SENT')) AS sent,
           min(c.at) FILTER (WHERE c.code = (SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED')) AS delivered,
           min(c.at) FILTER (WHERE c.code = (SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED')) AS opened,
           min(c.at) FILTER (WHERE c.code = (SELECT p.code FROM message_status_priority p WHERE p.name = 'CLICKED')) AS clicked
    FROM receipts c
    WHERE c.code = ANY (ARRAY(SELECT p.code FROM message_status_priority p WHERE p.name IN ('SENT', 'DELIVERED', 'OPENED', 'CLICKED')))
    GROUP BY 1
),
met AS (
    INSERT INTO message_time AS t (message, campaign_id, gateway, sent_at, delivered_at, opened_at, clicked_at)
    SELECT f.message, f.campaign, f.gateway, f.sent, f.delivered, f.opened, f.clicked FROM timed f ORDER BY f.message
    ON CONFLICT (message) DO UPDATE
    SET prev_gateway = t.gateway, prev_deliver = time_bucket(t.sent_at, t.delivered_at), prev_open = time_bucket(t.delivered_at, t.opened_at),
        gateway = LEAST(t.gateway, excluded.gateway), sent_at = LEAST(t.sent_at, excluded.sent_at), delivered_at = LEAST(t.delivered_at, excluded.delivered_at),
        opened_at = LEAST(t.opened_at, excluded.opened_at), clicked_at = LEAST(t.clicked_at, excluded.clicked_at)
    WHERE (LEAST(t.gateway, excluded.gateway), LEAST(t.sent_at, excluded.sent_at), LEAST(t.delivered_at, excluded.delivered_at),
           LEAST(t.opened_at, excluded.opened_at), LEAST(t.clicked_at, excluded.clicked_at))
          IS DISTINCT FROM (t.gateway, t.sent_at, t.delivered_at, t.opened_at, t.clicked_at)
    RETURNING t.campaign_id, t.gateway, time_bucket(t.sent_at, t.delivered_at) AS deliver, time_bucket(t.delivered_at, t.opened_at) AS open,
              t.prev_gateway, t.prev_deliver, t.prev_open
),
times AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT s.kind, array_agg(s.campaign), array_agg('-infinity'::timestamptz), array_agg(s.key), array_agg(s.status), array_agg(s.n), array_agg(0::int8)
    FROM (
        SELECT c.kind, c.campaign, c.key, c.status, sum(g.n)::int8 AS n
        FROM (SELECT m.campaign_id, m.gateway, m.deliver, m.open, count(*) AS n FROM met m GROUP BY 1, 2, 3, 4
              UNION ALL SELECT m.campaign_id, m.prev_gateway, m.prev_deliver, m.prev_open, -count(*) FROM met m GROUP BY 1, 2, 3, 4) g
        CROSS JOIN LATERAL time_counts(g.campaign_id, g.gateway, g.deliver, g.open) c
        GROUP BY 1, 2, 3, 4
        HAVING sum(g.n) <> 0
    ) s
    GROUP BY s.kind
)
