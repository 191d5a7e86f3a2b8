-- In place of 25_unchanged.sql while the inbox has a recent set: stage one has found the messages that did not change there. Those that
-- neither stage changed are old and up to date, or do not exist, or are found in another organisation alone.
, r AS MATERIALIZED (
    SELECT s.n, s.id, s.signature, s.status, s.campaign, s.owner AS org, receipt_fate(true, s.owner, s.org, $21::text) AS fate, s.stale
    FROM seen s WHERE s.known
    UNION ALL SELECT s.n, s.id, s.signature, COALESCE(m.status, s.status), CASE WHEN m.message_id IS NULL THEN s.campaign ELSE COALESCE(m.campaign_id, '') END,
           o.org, receipt_fate(s.found OR m.message_id IS NOT NULL, o.org, s.org, $21::text), s.top > m.status OR (s.mask & ~m.flags) <> 0
    FROM (SELECT DISTINCT ON (d.n) d.* FROM seen d WHERE NOT d.known ORDER BY d.n) s
    LEFT JOIN message_inbox m ON m.message_id = s.id AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL)
    CROSS JOIN LATERAL (SELECT CASE WHEN m.message_id IS NULL THEN s.owner ELSE m.org_id END AS org) o
    WHERE s.n NOT IN (SELECT c.n FROM older c)
),
