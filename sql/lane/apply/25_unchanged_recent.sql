-- In place of 25_unchanged.sql while the inbox has a recent set: stage one has found the messages that did not change there. Those that
-- neither stage changed are old and up to date, or do not exist.
, r AS MATERIALIZED (
    SELECT s.n, s.id, s.signature, s.status, s.campaign, s.owner AS org, receipt_fate(true, s.owner, s.org, $21::text) AS fate, s.stale
    FROM seen s WHERE s.known
    UNION ALL SELECT s.n, s.id, s.signature, m.status, COALESCE(m.campaign_id, ''), m.org_id,
           receipt_fate(m.message_id IS NOT NULL, m.org_id, s.org, $21::text), s.top > m.status OR (s.mask & ~m.flags) <> 0
    FROM seen s LEFT JOIN message_inbox m ON m.message_id = s.id AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL)
    WHERE NOT s.known AND s.n NOT IN (SELECT o.n FROM older o)
),
