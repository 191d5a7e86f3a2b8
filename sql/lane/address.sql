-- Gives parked receipts whose alias has landed the message id to which it leads, and with it the lane of that
-- message. Its next wake applies them. It comes after a fence with new = expected: the rows are this lane's, and no
-- other transaction moves them. Parameters: $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4 most rows.
-- Returns rows (moved; equal to $4: there may be more). The timeline of the receipts follows them.
--
-- A receipt that names no total of parts gets part and total from the alias, if that has some, as the intake would
-- have given it. The part is in the top byte of the event's key (src/core/record_event.c), where the alias's takes
-- the place of the receipt's own. So copies have one key, whichever way they came.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k."offset") AS at_offset,
           array_agg(k.index) AS index, array_agg(k.message_id) AS was, array_agg(k.target) AS target,
           array_agg(k.part) AS part, array_agg(k.parts) AS parts
    FROM (
        SELECT p.topic, p.partition, p."offset", p.index, p.message_id, t.target, d.part, d.parts
        FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
        JOIN parked_event p ON p.lane = $3::int4 AND p.topic = w.topic AND p.partition = w.partition
        CROSS JOIN LATERAL (SELECT (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id LIMIT 1) AS known
                            OFFSET 0) c
        CROSS JOIN LATERAL (
            SELECT CASE WHEN c.known IS NULL
                             AND (SELECT true FROM message_alias a
                                  WHERE a.channel_account = p.account
                                    AND a.gateway_id = COALESCE(p.gateway_id, p.message_id)) IS NOT NULL
                        THEN alias_target(p.account, COALESCE(p.gateway_id, p.message_id)) END AS target
            OFFSET 0) t
        LEFT JOIN LATERAL (SELECT a.part, a.parts FROM message_alias a
                           WHERE a.channel_account = p.account AND a.gateway_id = COALESCE(p.gateway_id, p.message_id)
                             AND p.parts IS NULL AND a.parts > 1) d ON true
        WHERE t.target <> p.message_id
        LIMIT $4::int4
    ) k
),
moved AS (
    UPDATE parked_event p
    SET message_id = k.target,
        gateway_id = COALESCE(p.gateway_id, p.message_id),
        lane = hashtextextended(k.target COLLATE "C", 0) & (c.lanes - 1),
        part = COALESCE(k.part, p.part), parts = COALESCE(k.parts, p.parts),
        event_key = p.event_key # ((COALESCE(k.part, p.part, 0) # COALESCE(p.part, 0))::int8 << 56)
    FROM picked,
         unnest(picked.topic, picked.partition, picked.at_offset, picked.index,
                picked.was, picked.target, picked.part, picked.parts)
                 AS k (topic, partition, at_offset, index, was, target, part, parts), consumer_topic c
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
      AND p.lane = $3::int4 AND c.topic = k.topic
    RETURNING k.topic, k.partition, k.at_offset, k.index, k.was, k.target
),
followed AS (
    UPDATE message_timeline t
    SET message_id = m.target
    FROM moved m
    WHERE t.message_id = m.was AND t.topic = m.topic AND t.partition = m.partition AND t."offset" = m.at_offset
      AND t.index = m.index
)
SELECT count(*) AS rows FROM moved;
