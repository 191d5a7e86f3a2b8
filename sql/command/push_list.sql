-- Pushes that are split, the youngest first. winner: a stage, or nobody.
SELECT p.name AS push,
       CASE WHEN p.decided_at IS NOT NULL THEN 'decided' WHEN p.started_at IS NULL THEN 'not begun'
            WHEN p.dealt_at IS NULL THEN 'gathers' ELSE 'dealt' END AS state,
       to_char(p.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS started_at,
       to_char(COALESCE(p.dealt_at, p.deal_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS dealt_at,
       to_char(p.decide_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS decide_at,
       to_char(p.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS decided_at, p.decided_by,
       CASE WHEN p.decided_at IS NOT NULL THEN COALESCE(p.winner, 'nobody') END AS winner
FROM push p
ORDER BY p.started_at DESC NULLS FIRST, p.name;
