-- As rollup.sql, for campaign_tally_delta: $1 int4 most rows, $2 int8 only ids above this one. Returns rows and last.
-- Here the keys of a dimension are bounded (rules/dimensions.sql): a campaign has a thousand, in the order in which
-- they come, and what comes under a further one is added to 'other'. A key that has a total keeps it, so all counts of
-- a message go to the same one. Of two roll-ups at once the second does nothing: both could give away the last place.
WITH
taken AS (
    DELETE FROM campaign_tally_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_tally_delta d WHERE d.id > $2::int8 ORDER BY d.id LIMIT $1::int4))
      -- A lock is a write, so without work none is taken.
      AND CASE WHEN EXISTS (SELECT FROM campaign_tally_delta d WHERE d.id > $2::int8)
               THEN (SELECT true FROM turn t WHERE t.task = 'tally' FOR UPDATE SKIP LOCKED) END
    RETURNING id, kind, campaign_id, at, key, status, messages, events
),
count AS MATERIALIZED (
    SELECT a.campaign_id, a.kind, a.at, a.key, a.status, sum(a.messages) AS messages, sum(a.events) AS events, min(a.id) AS id
    FROM (SELECT d.id, d.kind, unnest(d.campaign_id) AS campaign_id, unnest(d.at) AS at, unnest(d.key) AS key, unnest(d.status) AS status, unnest(d.messages) AS messages,
                 unnest(d.events) AS events
          FROM taken d) a
    GROUP BY a.campaign_id, a.kind, a.at, a.key, a.status
),
fresh AS MATERIALIZED (
    SELECT k.campaign_id, k.kind, k.key, row_number() OVER (PARTITION BY k.campaign_id, k.kind ORDER BY k.id, k.key COLLATE "C") AS n
    FROM (SELECT c.campaign_id, c.kind, c.key, min(c.id) AS id FROM count c WHERE c.kind LIKE 'by\_%' AND c.key <> 'other' GROUP BY 1, 2, 3) k
    WHERE NOT EXISTS (SELECT FROM campaign_tally_total t
                      WHERE t.campaign_id = k.campaign_id AND t.kind = k.kind AND t.at = '-infinity' AND t.key = k.key)
),
places AS MATERIALIZED (
    SELECT f.campaign_id, f.kind,
           1000 - (SELECT count(DISTINCT t.key) FROM campaign_tally_total t
                   WHERE t.campaign_id = f.campaign_id AND t.kind = f.kind AND t.at = '-infinity' AND t.key <> 'other') AS n
    FROM (SELECT DISTINCT f.campaign_id, f.kind FROM fresh f) f
),
excess AS MATERIALIZED (
    SELECT f.campaign_id, f.kind, f.key FROM fresh f JOIN places r ON r.campaign_id = f.campaign_id AND r.kind = f.kind WHERE f.n > r.n
),
placed AS NOT MATERIALIZED (
    SELECT c.*, c.key = 'other' OR (c.campaign_id, c.kind, c.key) IN (SELECT e.campaign_id, e.kind, e.key FROM excess e) AS to_other FROM count c
),
-- Only what goes to 'other' may meet in a cell again.
moved AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT k.campaign_id, k.kind, k.at, k.key, k.status, k.messages, k.events
    FROM (SELECT c.campaign_id, c.kind, c.at, c.key, c.status, c.messages, c.events FROM placed c WHERE NOT c.to_other
          UNION ALL
          SELECT c.campaign_id, c.kind, c.at, 'other', c.status, sum(c.messages), sum(c.events) FROM placed c WHERE c.to_other GROUP BY 1, 2, 3, 5) k
    ORDER BY k.campaign_id COLLATE "C", k.kind, k.at, k.key COLLATE "C", k.status
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
