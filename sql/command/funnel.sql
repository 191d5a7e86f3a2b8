-- The funnel: $1 text campaign (NULL: all), $2 text organisation that alone has messages in it (NULL: any). One row
-- per campaign and status or flag where something was counted, ordered by campaign and status. Columns: campaign_id,
-- status, messages, events, duplicates, customers, logical (counters.groups), org_id (NULL: several organisations, or
-- none). The caller adds what follows from the ladder (names, parents, `current`): the view campaign_funnel with it
-- takes four times as long.
SELECT c.campaign_id, c.status, c.messages, c.events, COALESCE(d.duplicates, 0) AS duplicates,
       COALESCE(g.customers, 0) AS customers, COALESCE(g.logical, 0) AS logical, o.org_id
FROM (
    SELECT r.campaign_id, r.status, sum(r.messages)::int8 AS messages, sum(r.events)::int8 AS events
    FROM campaign_count r
    WHERE $1::text IS NULL OR r.campaign_id = $1::text
    GROUP BY r.campaign_id, r.status
    HAVING sum(r.messages) <> 0 OR sum(r.events) <> 0
) c
LEFT JOIN (
    SELECT f.campaign_id, f.status, COALESCE(sum(f.groups) FILTER (WHERE f.kind = 'customer'), 0)::int8 AS customers,
           COALESCE(sum(f.groups) FILTER (WHERE f.kind = 'logical'), 0)::int8 AS logical
    FROM group_funnel f
    WHERE $1::text IS NULL OR f.campaign_id = $1::text
    GROUP BY f.campaign_id, f.status
) g ON g.campaign_id = c.campaign_id AND g.status = c.status
LEFT JOIN (
    SELECT t.campaign_id, t.status, sum(t.events)::int8 AS duplicates FROM campaign_tally t
    WHERE t.kind = 'duplicate' AND ($1::text IS NULL OR t.campaign_id = $1::text)
    GROUP BY t.campaign_id, t.status
) d ON d.campaign_id = c.campaign_id AND d.status = c.status
LEFT JOIN campaign_org o ON o.campaign_id = c.campaign_id
WHERE $2::text IS NULL OR o.org_id = $2::text
ORDER BY c.campaign_id, c.status;
