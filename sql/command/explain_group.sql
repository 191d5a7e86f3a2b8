-- The group that a message is in (counters.groups), as the last roll-up left it: $1 text id. Variables: kind and column
-- (of the inbox). One row, or none: kind, status (by name), messages, statuses in which they stand, how many in each.
SELECT g.kind, COALESCE(s.name, g.status::text) AS status, c.messages, c.statuses
FROM message_inbox m
CROSS JOIN LATERAL (SELECT COALESCE(m.campaign_id, '') COLLATE "C" AS campaign) i
JOIN message_group g ON g.campaign_id = i.campaign AND g.kind = :'kind'
    AND g.key = group_key((SELECT t.salt FROM group_salt t), :'kind', i.campaign,
                          m.:"column"::text COLLATE "C", m.message_id::text COLLATE "C")
LEFT JOIN message_status_priority s ON s.code = g.status
CROSS JOIN LATERAL (
    SELECT sum(o.n)::int8 AS messages,
           string_agg(format('%s %s', COALESCE(p.name, o.code::text), o.n), ', ' ORDER BY o.code) AS statuses
    FROM unnest(g.codes, g.counts) AS o (code, n) LEFT JOIN message_status_priority p ON p.code = o.code
) c
WHERE m.message_id = $1::text;
