-- Rule: why messages failed: receipts that name a class of reason, by campaign, and by gateway (with campaign '').
, why AS MATERIALIZED (
    SELECT c.campaign, COALESCE(c.gateway, '') AS gateway, c.reason, c.code, c.n FROM reason_receipts c
    UNION ALL SELECT e.campaign, COALESCE(e.gateway, ''), e.reason, e.code, -1 FROM echoed e WHERE e.reason IS NOT NULL
),
reasons AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'reason', array_agg(p.campaign), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(p.reason), array_agg(p.code),
           array_fill(0::int8, ARRAY[count(*)::int4]), array_agg(p.n)
    FROM (SELECT w.campaign, w.reason, w.code, sum(w.n) AS n FROM why w GROUP BY w.campaign, w.reason, w.code HAVING sum(w.n) <> 0) p HAVING count(*) > 0
    UNION ALL
    SELECT 'gateway_reason', array_fill(''::text, ARRAY[count(*)::int4]), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(p.gateway || '/' || p.reason), array_agg(p.code),
           array_fill(0::int8, ARRAY[count(*)::int4]), array_agg(p.n)
    FROM (SELECT w.gateway, w.reason, w.code, sum(w.n) AS n FROM why w GROUP BY w.gateway, w.reason, w.code HAVING sum(w.n) <> 0) p HAVING count(*) > 0
)
