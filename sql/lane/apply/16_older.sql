-- What stage one did not change: messages of the recent set that were up to date (known), and all others. Stage two is
-- for these others, which are not in the set, or there (found) of another organisation than the receipt names; it
-- leaves the set out: of partitions by created_at or by the id it then reads the older ones alone. Where stage one
-- changed all messages, nothing here is executed.
seen AS MATERIALIZED (
    SELECT e.n, e.id, e.top, e.mask, e.at, e.signature, e.org, m.message_id IS NOT NULL AS found,
           m.message_id IS NOT NULL AND (e.org IS NULL OR COALESCE(NULLIF(m.org_id, '') = e.org, false)) AS known, m.status,
           COALESCE(m.campaign_id, '') AS campaign, m.org_id AS owner,
           (e.top > m.status OR (e.mask & ~m.flags) <> 0
