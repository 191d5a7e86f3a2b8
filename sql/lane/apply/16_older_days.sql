-- In place of 16_older.sql in apply_days: what is known on its day is known.
seen AS MATERIALIZED (
    SELECT p.* FROM placed p WHERE p.known
    UNION ALL
    SELECT e.n, e.id, e.top, e.mask, e.at, e.signature, e.org, e.found OR m.message_id IS NOT NULL,
           m.message_id IS NOT NULL AND (e.org IS NULL OR COALESCE(NULLIF(m.org_id, '') = e.org, false)), COALESCE(m.status, e.status),
           CASE WHEN m.message_id IS NULL THEN e.campaign ELSE COALESCE(m.campaign_id, '') END, CASE WHEN m.message_id IS NULL THEN e.owner ELSE m.org_id END,
           (e.top > m.status OR (e.mask & ~m.flags) <> 0
