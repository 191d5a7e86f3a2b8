-- Rule: why messages failed: receipts that name a class of reason, by campaign, and by gateway (with campaign '').
, reasons AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT p.kind, array_agg(p.campaign), array_agg('-infinity'::timestamptz), array_agg(p.key), array_agg(p.code), array_agg(0::int8), array_agg(p.n)
    FROM (
        SELECT t.kind, CASE t.kind WHEN 'reason' THEN g.campaign ELSE '' END AS campaign,
               CASE t.kind WHEN 'reason' THEN g.reason ELSE COALESCE(g.gateway, '') || '/' || g.reason END AS key, g.code, sum(g.n) AS n
        FROM (SELECT c.campaign, c.gateway, c.reason, c.code, c.n FROM reason_receipts c
              UNION ALL SELECT e.campaign, e.gateway, e.reason, e.code, -1 FROM echoed e WHERE e.reason IS NOT NULL) g,
             (VALUES ('reason'), ('gateway_reason')) t (kind)
        GROUP BY 1, 2, 3, 4
        HAVING sum(g.n) <> 0
    ) p
    GROUP BY p.kind
)
