-- Moves the oldest deltas into the totals. Parameters: $1 int4 most rows, $2 int8 only ids above this one, $3 text
-- 'funnel' for the deltas of the funnel. Any other value of $3 takes the deltas of all other kinds, which have many
-- times as many cells. Returns rows (handled; equal to $1: there may be more) and last (the largest id handled, 0 if
-- none). The bound keeps the scan away from rows that were rolled up long ago and that an open snapshot keeps from
-- being removed. Rows of a transaction that commits late may lie below it, so now and then the bound is 0.
--
-- One statement: a reader sees a delta or its total, never both. The ids come as a sorted array, so two roll-ups lock
-- in the same order; the second finds the rows deleted. Totals and campaign_changed are upserted in their own order
-- for the same reason. unnest() in FROM would store each array's rows first.
--
-- The keys of a dimension are bounded: a campaign has a thousand, in the order in which they come. Counts of a
-- further key are added to 'other'. A key that has a total keeps it, so all counts of a message go to the same one. A
-- second such roll-up at the same time does nothing, since both could give away the last place.
WITH
taken AS (
    DELETE FROM counter_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM counter_delta d
                          WHERE d.id > $2::int8 AND (d.kind = 'funnel') = ($3::text = 'funnel')
                          ORDER BY d.id LIMIT $1::int4))
      -- A lock is a write, so without work none is taken.
      AND CASE WHEN $3::text = 'funnel' THEN true
               WHEN EXISTS (SELECT FROM counter_delta d WHERE d.id > $2::int8 AND d.kind <> 'funnel')
               THEN (SELECT true FROM turn t WHERE t.task = 'tally' FOR UPDATE SKIP LOCKED) END
    RETURNING id, kind, campaign_id, at, key, status, messages, events
),
funnel AS MATERIALIZED (
    SELECT a.campaign_id, a.at, a.status, sum(a.messages)::int8 AS messages, sum(a.events)::int8 AS events
    FROM (SELECT unnest(d.campaign_id) AS campaign_id, unnest(d.at) AS at, unnest(d.status) AS status,
                 unnest(d.messages) AS messages, unnest(d.events) AS events
          FROM taken d WHERE d.kind = 'funnel') a
    GROUP BY a.campaign_id, a.at, a.status
),
count AS MATERIALIZED (
    SELECT a.campaign_id, a.kind, COALESCE(a.at, '-infinity') AS at, COALESCE(a.key, '') AS key, a.status,
           sum(a.messages)::int8 AS messages, sum(a.events)::int8 AS events, min(a.id) AS id
    FROM (SELECT d.id, d.kind, unnest(d.campaign_id) AS campaign_id, unnest(d.at) AS at, unnest(d.key) AS key,
                 unnest(d.status) AS status, unnest(d.messages) AS messages, unnest(d.events) AS events
          FROM taken d WHERE d.kind <> 'funnel') a
    GROUP BY 1, 2, 3, 4, 5
),
fresh AS MATERIALIZED (
    SELECT k.campaign_id, k.kind, k.key,
           row_number() OVER (PARTITION BY k.campaign_id, k.kind ORDER BY k.id, k.key COLLATE "C") AS n
    FROM (SELECT c.campaign_id, c.kind, c.key, min(c.id) AS id FROM count c
          WHERE c.kind LIKE 'by\_%' AND c.key <> 'other' GROUP BY 1, 2, 3) k
    WHERE NOT EXISTS (SELECT FROM campaign_tally_total t
                      WHERE t.campaign_id = k.campaign_id AND t.kind = k.kind AND t.at = '-infinity' AND t.key = k.key)
),
places AS MATERIALIZED (
    SELECT f.campaign_id, f.kind,
           1000 - (SELECT count(DISTINCT t.key) FROM campaign_tally_total t
                   WHERE t.campaign_id = f.campaign_id
                     AND t.kind = f.kind
                     AND t.at = '-infinity'
                     AND t.key <> 'other') AS n
    FROM (SELECT DISTINCT f.campaign_id, f.kind FROM fresh f) f
),
excess AS MATERIALIZED (
    SELECT f.campaign_id, f.kind, f.key
    FROM fresh f JOIN places r ON r.campaign_id = f.campaign_id AND r.kind = f.kind WHERE f.n > r.n
),
-- Messages and events of the few places in the histograms of times, whatever the campaign.
placed AS MATERIALIZED (
    SELECT d.key AS place, n.*
    FROM (SELECT DISTINCT c.key FROM count c WHERE c.kind = 'time_place') d
    CROSS JOIN LATERAL time_counts(NULL, d.key) n
),
-- In which minute the funnel counts is known with the series alone. Minutes are kept for a day.
cells AS (
    SELECT f.campaign_id, 'hour' AS kind, date_bin('1 hour', f.at, 'epoch') AS at, '' AS key, f.status, f.messages,
           f.events
    FROM funnel f WHERE f.at > '-infinity'
    UNION ALL
    SELECT f.campaign_id, 'minute', f.at, '', f.status, f.messages, f.events
    FROM funnel f WHERE f.at > now() - interval '24 hours'
    UNION ALL
    SELECT c.campaign_id, c.kind, c.at,
           CASE WHEN (c.campaign_id, c.kind, c.key) IN (SELECT e.campaign_id, e.kind, e.key FROM excess e) THEN 'other'
                ELSE c.key END, c.status, c.messages, c.events
    FROM count c WHERE c.kind <> 'time_place'
    UNION ALL
    SELECT COALESCE(p.campaign, c.campaign_id), p.kind, '-infinity', p.key, p.status, c.messages, 0
    FROM count c JOIN placed p ON p.place = c.key WHERE c.kind = 'time_place'
),
funnel_moved AS (
    INSERT INTO campaign_funnel_total AS t (campaign_id, status, messages, events)
    SELECT f.campaign_id, f.status, sum(f.messages), sum(f.events) FROM funnel f
    GROUP BY f.campaign_id, f.status
    ORDER BY f.campaign_id COLLATE "C", f.status
    ON CONFLICT (campaign_id, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
),
noted AS (
    INSERT INTO campaign_changed (campaign_id)
    SELECT DISTINCT f.campaign_id COLLATE "C" FROM funnel f ORDER BY 1
    ON CONFLICT (campaign_id) DO UPDATE SET changed_at = now()
),
-- Counts that cancel out make no total. Keys of dimensions are the exception: they have taken their place.
moved AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT c.campaign_id, c.kind, c.at, c.key, c.status, sum(c.messages), sum(c.events) FROM cells c
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0 OR c.kind LIKE 'by\_%'
    ORDER BY c.campaign_id COLLATE "C", c.kind COLLATE "C", c.at, c.key COLLATE "C", c.status
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
