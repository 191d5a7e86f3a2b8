-- Recounts a kind of groups (counters.groups) and compares its counters, in one snapshot. The statement is this file
-- and 90_list.sql or 90_repair.sql. Parameters: $1 text[] campaigns, $2 bool: TARGETED is counted by us. Variables:
-- column (of the inbox), kind (customer, logical). Campaigns with messages that are gone are left out: their groups
-- are not kept without end.
WITH
gone AS MATERIALIZED (
    SELECT COALESCE(d.campaign_id, '') AS campaign_id FROM inbox_detached d
    WHERE d.campaign_id = ANY ($1::text[]) OR ('' = ANY ($1::text[]) AND d.campaign_id IS NULL)
    UNION SELECT l.campaign_id FROM detached_messages($1::text[]) l
    UNION SELECT r.campaign_id FROM campaign_retired r WHERE r.campaign_id = ANY ($1::text[])
),
live AS NOT MATERIALIZED (
    SELECT m.campaign_id, m.id, m.value, m.status, m.flags, -- member: of which group_key() is a hash
           CASE WHEN :'kind' = 'logical' THEN COALESCE(NULLIF(m.value, ''), m.id) ELSE NULLIF(m.value, '') END AS member
    FROM (SELECT COALESCE(m.campaign_id, '') COLLATE "C" AS campaign_id, m.status, m.flags,
                 m.message_id::text COLLATE "C" AS id, m.:"column"::text COLLATE "C" AS value
          FROM message_inbox m
          WHERE m.campaign_id = ANY ($1::text[]) OR ('' = ANY ($1::text[]) AND m.campaign_id IS NULL)) m
    WHERE m.campaign_id NOT IN (SELECT g.campaign_id FROM gone g)
),
ranks AS MATERIALIZED (SELECT array_agg(r.code ORDER BY r.rank) AS codes FROM group_rank r),
-- Few combinations of status and flags stand for all groups, so what each counts is asked once. No key is made here: it
-- costs more than all the rest.
kinds AS MATERIALIZED (
    SELECT g.campaign_id, r.codes[g.rank] AS status, g.flags, count(*)::int8 AS n
    FROM (SELECT l.campaign_id, max(array_position((SELECT r.codes FROM ranks r), l.status)) AS rank,
                 bit_or(l.flags) AS flags
          FROM live l WHERE l.member IS NOT NULL GROUP BY l.campaign_id, l.member) g CROSS JOIN ranks r
    GROUP BY 1, 2, 3
),
counted AS MATERIALIZED (
    SELECT k.campaign_id, s.code AS status, sum(k.n)::int8 AS n
    FROM kinds k CROSS JOIN LATERAL group_steps(NULL::int2, NULL::int4, k.status, k.flags) s
    GROUP BY 1, 2
),
cell AS MATERIALIZED (
    SELECT c.campaign_id, c.status, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter
    FROM (SELECT c.campaign_id, c.status, c.n AS rows, 0::int8 AS counter FROM counted c
          UNION ALL SELECT f.campaign_id, f.status, 0, f.groups
                    FROM group_funnel f
                    WHERE f.kind = :'kind' AND f.campaign_id = ANY ($1::text[])) c
    WHERE ($2::bool OR c.status <> 0) AND c.campaign_id NOT IN (SELECT g.campaign_id FROM gone g)
    GROUP BY 1, 2
),
-- Has messages that were inserted before the groups were counted.
older AS MATERIALIZED (
    SELECT c.campaign_id FROM cell c WHERE c.status = 0 AND c.counter < c.rows
)
