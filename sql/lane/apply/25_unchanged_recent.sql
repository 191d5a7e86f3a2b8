-- In place of 25_unchanged.sql while the inbox has a recent set: stage one has found the messages that did not change
-- there. Those that neither stage changed are old and up to date, or do not exist, or are found in another organisation
-- alone.
, r AS MATERIALIZED (
    SELECT s.n, s.id, s.signature, s.status, s.campaign, s.owner AS org, receipt_fate(true, s.owner, s.org, $21::text) AS fate, s.stale
    FROM seen s WHERE s.known
    UNION ALL SELECT e.n, e.id, e.signature, COALESCE(m.status, e.status), CASE WHEN m.message_id IS NULL THEN e.campaign ELSE COALESCE(m.campaign_id, '') END,
           o.org, receipt_fate(e.found OR m.message_id IS NOT NULL, o.org, e.org, $21::text), (e.top > m.status OR (e.mask & ~m.flags) <> 0
