-- The groups that some rows of group_delta change, as they are with these: ids int8[] of the rows. Reads only. A group
-- is the multiset of the statuses of its messages, so a change is an addition, and neither order nor batches matter.
-- Returns for each group: was and had (status and flags without the rows; NULL: it is new), status, flags, codes and
-- counts. Aggregates in place of joins: a join of CTEs would be a nested loop.
CREATE OR REPLACE FUNCTION groups_merged(ids int8[])
RETURNS TABLE (campaign_id text, kind text, key bytea, was int2, had int4,
               status int2, flags int4, codes int2[], counts int4[])
LANGUAGE sql STABLE ROWS 1000 AS $$
    WITH ranks AS MATERIALIZED (SELECT array_agg(r.code ORDER BY r.rank) AS codes FROM group_rank r),
    change AS MATERIALIZED (
        SELECT a.campaign_id, d.kind, a.key, a.old, a.new, bit_or(a.gained) AS gained, count(*)::int4 AS n
        FROM group_delta d,
             unnest(d.campaign_id, d.key, d.old, d.new, d.gained) AS a (campaign_id, key, old, new, gained)
        WHERE d.id = ANY (ids)
        GROUP BY 1, 2, 3, 4, 5
    ),
    stored AS (
        SELECT g.*
        FROM (SELECT DISTINCT c.campaign_id, c.kind, c.key FROM change c) c
        JOIN message_group g ON g.campaign_id = c.campaign_id AND g.kind = c.kind AND g.key = c.key
    ),
    part AS (
        SELECT e.campaign_id, e.kind, e.key, e.code, sum(e.n)::int4 AS n,
               bit_or(e.gained) AS gained, max(e.was) AS was, max(e.had) AS had
        FROM (SELECT c.campaign_id, c.kind, c.key, s.code, s.n, c.gained, NULL::int2 AS was, NULL::int4 AS had
              FROM change c CROSS JOIN LATERAL (VALUES (c.old, -c.n), (c.new, c.n)) s (code, n) WHERE s.code IS NOT NULL
              UNION ALL
              SELECT g.campaign_id, g.kind, g.key, o.code, o.n, 0, g.status, g.flags
              FROM stored g, unnest(g.codes, g.counts) AS o (code, n)) e
        GROUP BY 1, 2, 3, 4
    )
    SELECT p.campaign_id, p.kind, p.key, max(p.was), max(p.had),
           r.codes[max(array_position(r.codes, p.code)) FILTER (WHERE p.n > 0)],
           COALESCE(max(p.had), 0) | bit_or(p.gained),
           COALESCE(array_agg(p.code ORDER BY p.code) FILTER (WHERE p.n <> 0), '{}'),
           COALESCE(array_agg(p.n ORDER BY p.code) FILTER (WHERE p.n <> 0), '{}')
    FROM part p CROSS JOIN ranks r
    GROUP BY 1, 2, 3, r.codes
$$;
