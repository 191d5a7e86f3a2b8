-- Rule: messages that count as one (counters.groups). Members of a group lie in several lanes, so lanes only append
-- what changed; groups_fold() does the rest. The columns are read by the message's key: the platform never changes
-- them. Variables: group_1 and group_2, columns of the inbox (where there is one, it stands in both); group_kinds, an
-- array of what they are.
, members AS MATERIALIZED (
    SELECT u.id, u.campaign, u.old, u.new, u.gained,
           (SELECT ARRAY[m.:"group_1"::text COLLATE "C", m.:"group_2"::text COLLATE "C"] FROM message_inbox m WHERE m.message_id = u.id LIMIT 1) AS "values"
    FROM u
    WHERE u.old <> u.new OR u.gained <> 0
),
grouped AS (
    INSERT INTO group_delta (kind, campaign_id, key, old, new, gained)
    SELECT k.kind, a.campaign, a.key, a.old, a.new, a.gained
    FROM unnest(:'group_kinds'::text[]) WITH ORDINALITY AS k (kind, n),
         LATERAL (SELECT array_agg(m.campaign) AS campaign, array_agg(m.key) AS key, array_agg(m.old) AS old, array_agg(m.new) AS new, array_agg(m.gained) AS gained
                  FROM (SELECT m.campaign, group_key((SELECT s.salt FROM group_salt s), k.kind, m.campaign, m."values"[k.n::int4], m.id) AS key, m.old, m.new, m.gained
                        FROM members m) m
                  WHERE m.key IS NOT NULL HAVING count(*) > 0) a
)
