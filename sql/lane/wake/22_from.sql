    FROM folded, unnest(folded.id, folded.top, folded.mask, folded.at, folded.link, folded.org, folded.any_org, folded.sent, folded.delivered, folded.opened,
                        folded.clicked, folded.gateway) AS e (id, top, mask, at, link, org, any_org, sent, delivered, opened, clicked, gateway)
    WHERE m.message_id = e.id AND (e.any_org OR NULLIF(m.org_id, '') COLLATE "C" IS NOT DISTINCT FROM e.org)
      AND (e.top > m.status OR (e.mask & ~m.flags) <> 0
