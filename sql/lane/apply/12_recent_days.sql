-- What was not changed on its day: messages of that day that were up to date (known), and all others, which the recent
-- set is searched for.
placed AS MATERIALIZED (
    SELECT e.n, e.id, e.top, e.mask, e.at, e.signature, e.org, m.message_id IS NOT NULL AS found,
           m.message_id IS NOT NULL AND (e.org IS NULL OR COALESCE(NULLIF(m.org_id, '') = e.org, false)) AS known, m.status,
           COALESCE(m.campaign_id, '') AS campaign, m.org_id AS owner,
           (e.top > m.status OR (e.mask & ~m.flags) <> 0
