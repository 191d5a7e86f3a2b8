-- First times of messages that are older than they are kept: $1 int8 ms (0: the rule is off here, and they stay: another instance may have it on), $2 int4 most
-- rows. What they count stays in the histograms, and is booked as forgotten_…, so that rows and forgotten ones together are what these say.
-- Returns rows (deleted).
WITH gone AS (
    DELETE FROM message_time t
    WHERE t.ctid = ANY (ARRAY(
        SELECT o.ctid FROM message_time o WHERE o.begun < now() - NULLIF($1::int8, 0) * interval '1 millisecond' LIMIT $2::int4 FOR UPDATE SKIP LOCKED))
    RETURNING t.campaign_id, t.gateway, time_bucket(t.sent_at, t.delivered_at) AS deliver, time_bucket(t.delivered_at, t.opened_at) AS open
),
booked AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'forgotten_' || s.kind, array_agg(s.campaign), array_agg('-infinity'::timestamptz), array_agg(s.key), array_agg(s.status), array_agg(s.n),
           array_agg(0::int8)
    FROM (SELECT c.kind, c.campaign, c.key, c.status, count(*) AS n
          FROM gone g CROSS JOIN LATERAL time_counts(g.campaign_id, g.gateway, g.deliver, g.open) c GROUP BY 1, 2, 3, 4) s
    GROUP BY s.kind
)
SELECT count(*) AS rows FROM gone;
