-- Takes parked receipts whose message exists by now, and makes dead letters of those that name another organisation
-- than it has. It comes after a fence with next = expected, which stops a zombie. Parameters: $1 text[] topics, $2
-- int4[] partitions (the pairs that are moved by the fence), $3 int4 lane, $4 int4 most rows. It takes rows in the
-- order of their positions, pair by pair.
--
-- Returns a row for each, sorted by id and organisation: fits (else it is a letter now), gateway and, where that is
-- 'other', account, for figures. A row that fits has further columns, of which the batch is made
-- (src/core/batch_woken.c). These are message id, status, flags, machines that count beside it, time (microseconds
-- since 1970), the organisation of its message. Further: whether the receipt names that, traceparent, class of the
-- reason, key of the event, payload. The last two are part (only of a delivered one) and, if all parts are delivered
-- with these, when the last one was.
--
-- src/postgres/lane_statements.c writes the variable: the payload as text, NULL where no rule reads it.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k.at_offset) AS at_offset,
           array_agg(k.index) AS index, array_agg(k.org) AS org
    FROM parked_applicable($1::text[], $2::int4[], $3::int4, $4::int4) k
),
-- Arrays between the parts keep every plan the same: ten rows expected, a lookup by key for each, in order.
gone AS (
    DELETE FROM parked_event p
    USING picked, unnest(picked.topic, picked.partition, picked.at_offset, picked.index, picked.org)
                  AS k (topic, partition, at_offset, index, org)
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
    RETURNING p.*, k.org, p.org_id IS NULL OR COALESCE(p.org_id = k.org, false) AS fits,
              CASE WHEN p.parts IS NOT NULL
                        AND p.status = (SELECT s.code FROM message_status_priority s WHERE s.name = 'DELIVERED')
                   THEN p.part END AS delivered
),
refused AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, at)
    SELECT g.topic, g.partition, g."offset", g.index, g.lane, 'other_organisation',
           letter_detail(fate_detail('other_organisation', g.org_id, g.org), octet_length(g.payload)),
           substr(g.payload, 1, 65536), g.traceparent, g.at
    FROM gone g WHERE NOT g.fits
    ON CONFLICT DO NOTHING
),
-- Stores the parts of messages, in the order in which all wakes lock them. A part is delivered when the earliest of
-- its receipts says so. Column whole: the time of the last part, if all from the first to the last are delivered.
-- Stored values only grow (parts) or only shrink (times, the total), so neither order nor repetition nor the bounds
-- of wakes matter.
noted AS (
    SELECT g.message_id, g.delivered AS part, min(g.parts) AS parts, min(g.at) AS at
    FROM gone g
    WHERE g.fits AND g.delivered IS NOT NULL
    GROUP BY g.message_id, g.delivered
),
parts AS (
    INSERT INTO message_part AS p (message_id, parts, delivered, delivered_at)
    SELECT n.message_id, min(n.parts), array_agg(n.part ORDER BY n.part), array_agg(n.at ORDER BY n.part)
    FROM noted n
    WHERE n.message_id IN (SELECT messages_held(ARRAY(SELECT k.message_id FROM noted k)))
    GROUP BY n.message_id ORDER BY n.message_id COLLATE "C"
    ON CONFLICT (message_id) DO UPDATE
    SET parts = LEAST(p.parts, EXCLUDED.parts), noted_at = now(), (delivered, delivered_at) = (
        SELECT array_agg(d.part ORDER BY d.part), array_agg(d.at ORDER BY d.part)
        FROM (SELECT u.part, min(u.at) AS at
              FROM unnest(p.delivered || EXCLUDED.delivered, p.delivered_at || EXCLUDED.delivered_at) AS u (part, at)
              GROUP BY u.part) d)
    RETURNING p.message_id, (SELECT CASE WHEN count(*) = p.parts THEN max(d.at) END
                             FROM unnest(p.delivered, p.delivered_at) AS d (part, at) WHERE d.part <= p.parts) AS whole
)
SELECT g.fits, g.gateway, CASE WHEN g.gateway = 'other' THEN left(g.account, 40) END AS account,
       g.message_id, g.status, g.flags, g.machines,
       (extract(epoch FROM g.at) * 1000000)::int8 AS at, g.org, g.org_id IS NOT NULL AS named,
       g.traceparent, g.reason_class, g.event_key, :payload AS payload, g.delivered AS part,
       (SELECT (extract(epoch FROM p.whole) * 1000000)::int8 FROM parts p WHERE p.message_id = g.message_id) AS whole
FROM gone g
ORDER BY g.message_id COLLATE "C", g.org COLLATE "C";
