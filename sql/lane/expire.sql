-- Moves parked receipts to dead_letter, never counted: those older than the limit whose message still does not exist,
-- and those whose message has been deleted. The letter of a message that was erased keeps no payload. Receipts whose
-- message exists are woken, and receipts that an alias leads elsewhere are moved there, however old they are. It
-- comes after a fence with new = expected. Parameters: $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4
-- most rows, $5 int8 max age in ms. Returns rows (handled), gateways of those that were too old, as wake does,
-- retired (rows of deleted messages) and their gateways, retired_gateways.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k."offset") AS at_offset,
           array_agg(k.index) AS index, array_agg(k.erased) AS erased
    FROM (
        SELECT p.topic, p.partition, p."offset", p.index, c.erased
        FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
        JOIN parked_event p ON p.lane = $3::int4 AND p.topic = w.topic AND p.partition = w.partition
        CROSS JOIN LATERAL (SELECT (SELECT true
                                    FROM message_inbox m
                                    WHERE m.message_id = p.message_id
                                    LIMIT 1) AS known,
                                   (SELECT bool_or(r.erased) FROM retired_message r
                                    WHERE r.hash IN (hashtextextended(p.message_id COLLATE "C", 0),
                                                     erased_alias_hash(p.account, p.gateway_id)))
                                       AS erased OFFSET 0) c
        WHERE (p.parked_at < now() - $5::int8 * interval '1 millisecond' OR c.erased IS NOT NULL) AND c.known IS NULL
          AND COALESCE(alias_target(p.account, COALESCE(p.gateway_id, p.message_id)) = p.message_id, true)
        LIMIT $4::int4
    ) k
),
taken AS (
    DELETE FROM parked_event p
    USING picked, unnest(picked.topic, picked.partition, picked.at_offset, picked.index, picked.erased)
                  AS k (topic, partition, at_offset, index, erased)
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
    RETURNING p.*, k.erased IS NOT NULL AS retired, COALESCE(k.erased, false) AS erased
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, at)
    SELECT t.topic, t.partition, t."offset", t.index, t.lane,
           CASE WHEN t.retired THEN 'retired_message' ELSE 'aged_out' END,
           letter_detail(CASE WHEN t.retired THEN 'its message was deleted'
                              ELSE format('parked for %s s', floor(extract(epoch FROM now() - t.parked_at))) END,
                              CASE WHEN t.erased THEN 0 ELSE octet_length(t.payload) END),
           CASE WHEN NOT t.erased THEN substr(t.payload, 1, 65536) END, t.traceparent, t.at
    FROM taken t
    ON CONFLICT DO NOTHING
)
SELECT COALESCE(sum(g.n), 0)::int8 AS rows,
       string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n')
           FILTER (WHERE NOT g.retired AND g.gateway IS NOT NULL) AS gateways,
       COALESCE(sum(g.n) FILTER (WHERE g.retired), 0)::int8 AS retired,
       string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n')
           FILTER (WHERE g.retired AND g.gateway IS NOT NULL)
           AS retired_gateways
FROM (SELECT t.retired, t.gateway, count(*) AS n FROM taken t GROUP BY t.retired, t.gateway) g;
