-- Applies parked receipts whose message exists by now, and makes dead letters of those that name another organisation
-- than it has; after a fence with new = expected, which stops a zombie. Like apply/*.sql, the statement is this file,
-- the subscribers (subscribers/*.sql) and 90_answer.sql. It always brings the columns that subscribers read. $1 text[]
-- topics, $2 int4[] partitions (the pairs that are moved by the fence), $3 int4 lane, $4 int4 most rows. Takes rows in
-- the order of their positions, pair by pair.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k.at_offset) AS at_offset,
           array_agg(k.index) AS index, array_agg(k.campaign) AS campaign, array_agg(k.org) AS org
    FROM parked_applicable($1::text[], $2::int4[], $3::int4, $4::int4) k
),
-- Arrays between the parts keep every plan the same: ten rows expected, a lookup by key for each, in order.
gone AS (
    DELETE FROM parked_event p
    USING picked, unnest(picked.topic, picked.partition, picked.at_offset, picked.index, picked.campaign, picked.org)
                  AS k (topic, partition, at_offset, index, campaign, org)
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
    RETURNING p.*, k.campaign, k.org, p.org_id IS NULL OR COALESCE(p.org_id = k.org, false) AS fits
),
taken AS MATERIALIZED (
    SELECT g.message_id, g.status, g.flags, g.at, g.campaign, g.org, g.org_id IS NOT NULL AS named, g.traceparent, CASE WHEN g.gateway = 'other' THEN left(g.account, 40) ELSE g.gateway END AS gateway, g.reason_class,
           g.event_key, CASE WHEN g.status = d.code THEN g.part END AS part, g.parts, COALESCE(d.parent, 0::int2) AS below, d.code AS delivered
    FROM gone g LEFT JOIN message_status_priority d ON d.name = 'DELIVERED'
    WHERE g.fits
),
refused AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, at)
    SELECT g.topic, g.partition, g."offset", g.index, g.lane, 'other_organisation',
           letter_detail(fate_detail('other_organisation', g.org_id, g.org), octet_length(g.payload)),
           substr(g.payload, 1, 65536), g.traceparent, g.at
    FROM gone g WHERE NOT g.fits
    ON CONFLICT DO NOTHING
),
-- The parts of messages, in the order in which all wakes lock them. whole: with these, all from the first to the last
-- are delivered. What is stored only grows (parts) or only shrinks (the total), so neither order nor repetition nor the
-- bounds of wakes matter.
parts AS (
    INSERT INTO message_part AS p (message_id, parts, delivered, delivered_at)
    SELECT t.message_id, min(t.parts), array_agg(DISTINCT t.part), max(t.at)
    FROM taken t WHERE t.part IS NOT NULL AND t.message_id IN (SELECT messages_held(ARRAY(SELECT k.message_id FROM taken k WHERE k.part IS NOT NULL)))
    GROUP BY t.message_id ORDER BY t.message_id COLLATE "C"
    ON CONFLICT (message_id) DO UPDATE
    SET parts = LEAST(p.parts, EXCLUDED.parts), delivered_at = GREATEST(p.delivered_at, EXCLUDED.delivered_at), noted_at = now(),
        delivered = ARRAY(SELECT DISTINCT n FROM unnest(p.delivered || EXCLUDED.delivered) n ORDER BY n)
    RETURNING p.message_id, (SELECT count(*) FROM unnest(p.delivered) n WHERE n <= p.parts) = p.parts AS whole, p.delivered_at AS at
),
-- That one part is delivered proves of the message what stands above DELIVERED in the ladder: SENT.
named AS MATERIALIZED (
    SELECT t.message_id, t.at, t.campaign, t.org, t.named, t.traceparent AS link, c.code, CASE WHEN t.part IS NOT NULL AND c.code = t.status THEN t.below ELSE c.top END AS top,
           c.mask, t.status, t.gateway
    FROM taken t CROSS JOIN LATERAL receipt_codes(t.status, t.flags) c
),
-- The same fold as in the daemon: highest status, the smallest time among equals, all flags. Receipts of rows of one id
-- that are of different organisations are folded apart. any_org: no receipt names one, and there is nothing apart, so
-- every row of the id takes it.
folded AS (
    SELECT array_agg(f.message_id ORDER BY f.key, f.org) AS id, array_agg(f.top ORDER BY f.key, f.org) AS top, array_agg(f.mask ORDER BY f.key, f.org) AS mask,
           array_agg(f.at ORDER BY f.key, f.org) AS at, array_agg(f.link ORDER BY f.key, f.org) AS link, array_agg(f.org ORDER BY f.key, f.org) AS org,
           array_agg(f.any_org ORDER BY f.key, f.org) AS any_org, array_agg(f.sent ORDER BY f.key, f.org) AS sent,
           array_agg(f.delivered ORDER BY f.key, f.org) AS delivered, array_agg(f.opened ORDER BY f.key, f.org) AS opened,
           array_agg(f.clicked ORDER BY f.key, f.org) AS clicked, array_agg(f.gateway ORDER BY f.key, f.org) AS gateway
    FROM (
        SELECT v.message_id, v.message_id COLLATE "C" AS key, v.org, max(v.top) AS top, bit_or(v.mask) AS mask,
               (array_agg(v.at ORDER BY v.top DESC, v.at))[1] AS at, min(v.link COLLATE "C") AS link,
               NOT bool_or(v.named) AND count(*) OVER (PARTITION BY v.message_id) = 1 AS any_org,
               min(v.at) FILTER (WHERE v.timed = 'SENT') AS sent, min(v.at) FILTER (WHERE v.timed = 'DELIVERED') AS delivered,
               min(v.at) FILTER (WHERE v.timed = 'OPENED') AS opened, min(v.at) FILTER (WHERE v.timed = 'CLICKED') AS clicked,
               min(v.gateway COLLATE "C") FILTER (WHERE v.timed IS NOT NULL) AS gateway
        FROM (SELECT e.message_id, e.at, e.link, e.top, e.mask, e.named, COALESCE(e.org, max(e.org) OVER (PARTITION BY e.message_id)) AS org, e.gateway, p.name AS timed
              FROM (SELECT n.message_id, n.at, n.link, n.top, n.mask, n.named, n.org, n.status, n.gateway FROM named n
                    UNION ALL
                    SELECT w.message_id, w.at, NULL, (SELECT t.delivered FROM taken t LIMIT 1), 0, false, NULL, NULL, NULL FROM parts w WHERE w.whole) e
              LEFT JOIN message_status_priority p ON p.code = e.status AND p.name IN ('SENT', 'DELIVERED', 'OPENED', 'CLICKED')) v
        GROUP BY v.message_id, v.org
    ) f
),
