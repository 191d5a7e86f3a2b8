-- Campaigns whose counters changed since a snapshot: $1 text snapshot (NULL: none yet, so nothing has). The first row
-- has the snapshot that this statement sees; the others are campaigns, at most 1000. Columns: snapshot, campaign_id,
-- org_id, changed_at, behind_s (of the first row: whole seconds, as text).
--
-- A delta is new, or it is in its total by now and the roll-up has written campaign_changed. Either way a row is of a
-- transaction that the snapshot did not see. age() comes first, since it is cheap. Rows know the lower half of their
-- transaction's number; the snapshot gives the upper one.
WITH before AS MATERIALIZED (
    SELECT s.at, age(pg_snapshot_xmin(s.at)::xid) AS age, pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS top
    FROM (SELECT $1::text::pg_snapshot AS at) s
    WHERE $1::text IS NOT NULL
),
fresh AS (
    SELECT t.campaign_id, t.xmin::text::int8 AS low FROM campaign_changed t, before b WHERE age(t.xmin) <= b.age
    UNION ALL
    SELECT a.campaign_id, d.xmin::text::int8 FROM counter_delta d, before b, unnest(d.campaign_id) AS a (campaign_id)
    WHERE d.kind = 'funnel' AND age(d.xmin) <= b.age
),
changed AS (
    SELECT DISTINCT f.campaign_id
    FROM fresh f, before b
    CROSS JOIN LATERAL (SELECT (b.top >> 32 << 32) + f.low AS full_id) x
    WHERE NOT pg_visible_in_snapshot(
        (CASE WHEN x.full_id > b.top THEN x.full_id - 4294967296 ELSE x.full_id END)::text::xid8, b.at)
    LIMIT 1000
)
SELECT pg_current_snapshot()::text AS snapshot, NULL AS campaign_id, NULL AS org_id,
       to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS changed_at,
       (SELECT floor(b.behind_s)::text FROM counters_behind b) AS behind_s
UNION ALL
SELECT NULL, c.campaign_id, o.org_id, NULL, NULL
FROM changed c
LEFT JOIN campaign_org o ON o.campaign_id = c.campaign_id;
