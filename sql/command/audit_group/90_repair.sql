-- Replaces the groups of campaigns that have any difference, after command/groups_lock.sql. Returns repaired: how
-- many cells were off. Rows of group_delta will still be added, so they are taken off what the inbox's rows say.
-- Groups and deltas together then say what the rows say.
, off AS MATERIALIZED (
    SELECT DISTINCT c.campaign_id FROM cell c WHERE c.rows <> c.counter
),
part AS (
    SELECT e.campaign_id, e.key, e.code, sum(e.n)::int4 AS n, bit_or(e.flags) AS flags
    FROM (SELECT l.campaign_id,
                 group_key((SELECT s.salt FROM group_salt s), :'kind', l.campaign_id, l.value, l.id) AS key,
                 l.status AS code, count(*) AS n,
                 bit_or(l.flags) AS flags
          FROM live l WHERE l.member IS NOT NULL AND l.campaign_id IN (SELECT o.campaign_id FROM off o) GROUP BY 1, 2, 3
          UNION ALL
          SELECT a.campaign_id, a.key, s.code, s.n, 0
          FROM group_delta d, unnest(d.campaign_id, d.key, d.old, d.new) AS a (campaign_id, key, old, new),
               LATERAL (VALUES (a.old, 1), (a.new, -1)) s (code, n)
          WHERE d.kind = :'kind' AND s.code IS NOT NULL) e
    WHERE e.campaign_id IN (SELECT o.campaign_id FROM off o)
    GROUP BY 1, 2, 3
),
made AS MATERIALIZED (
    SELECT p.campaign_id, p.key, r.codes[max(array_position(r.codes, p.code)) FILTER (WHERE p.n > 0)] AS status,
           bit_or(p.flags) AS flags,
           COALESCE(array_agg(p.code ORDER BY p.code) FILTER (WHERE p.n <> 0), '{}') AS codes,
           COALESCE(array_agg(p.n ORDER BY p.code) FILTER (WHERE p.n <> 0), '{}') AS counts
    FROM part p CROSS JOIN ranks r
    GROUP BY 1, 2, r.codes
),
dropped AS (
    DELETE FROM message_group g
    WHERE g.kind = :'kind'
      AND g.campaign_id IN (SELECT o.campaign_id FROM off o)
      AND (g.campaign_id, g.key) NOT IN (SELECT m.campaign_id, m.key FROM made m)
),
stored AS (
    INSERT INTO message_group AS g (campaign_id, kind, key, status, flags, codes, counts)
    SELECT m.campaign_id, :'kind', m.key, m.status, m.flags, m.codes, m.counts FROM made m ORDER BY 1, 3
    ON CONFLICT (campaign_id, kind, key) DO UPDATE SET status = excluded.status, flags = excluded.flags,
                                                       codes = excluded.codes, counts = excluded.counts
),
delta AS (
    INSERT INTO counter_delta (kind, campaign_id, status, messages, events)
    SELECT :'kind', array_agg(d.campaign_id), array_agg(d.status), array_agg(d.n), array_agg(0::int8)
    FROM (SELECT c.campaign_id, c.status, sum(c.n)::int8 AS n
          FROM (SELECT m.campaign_id, s.code AS status, 1 AS n
                FROM made m
                CROSS JOIN LATERAL group_steps(NULL::int2, NULL::int4, m.status, m.flags) s
                UNION ALL
                SELECT t.campaign_id, t.status, -t.messages FROM campaign_tally t
                WHERE t.kind = :'kind' AND t.campaign_id IN (SELECT o.campaign_id FROM off o)) c
          GROUP BY 1, 2 HAVING sum(c.n) <> 0) d
    HAVING count(*) > 0
)
SELECT count(*) AS repaired FROM cell c WHERE c.rows <> c.counter
