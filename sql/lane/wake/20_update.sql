-- The same UPDATE as in apply/10_update.sql, which says why it reads like this: change both.
u AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END, updated_at = now()
    FROM folded, unnest(folded.id, folded.top, folded.mask, folded.at, folded.link, folded.org, folded.any_org) AS e (id, top, mask, at, link, org, any_org)
    WHERE m.message_id = e.id AND (e.any_org OR NULLIF(m.org_id, '') COLLATE "C" IS NOT DISTINCT FROM e.org) AND (e.top > m.status OR (e.mask & ~m.flags) <> 0)
    RETURNING COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained, m.message_id AS id, COALESCE(m.org_id, '') AS org, e.link, e.at
),
