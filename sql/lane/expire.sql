-- Parked receipts that are older than the limit and whose message still does not exist: to dead_letter, never counted.
-- (What has become applicable is woken, and what an alias leads elsewhere is moved there, however old it is.) After a fence with
-- new = expected.
-- $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4 most rows, $5 int8 max age in ms. Returns rows (handled),
-- and gateways, as wake does.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k."offset") AS at_offset,
           array_agg(k.index) AS index
    FROM (
        SELECT p.topic, p.partition, p."offset", p.index
        FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
        JOIN parked_event p ON p.lane = $3::int4 AND p.topic = w.topic AND p.partition = w.partition
        CROSS JOIN LATERAL (SELECT (SELECT true FROM message_inbox m
                                    WHERE m.message_id = p.message_id) AS known OFFSET 0) c
        WHERE p.parked_at < now() - $5::int8 * interval '1 millisecond' AND c.known IS NULL
          AND COALESCE(alias_target(p.account, COALESCE(p.gateway_id, p.message_id)) = p.message_id, true)
        LIMIT $4::int4
    ) k
),
taken AS (
    DELETE FROM parked_event p
    USING picked, unnest(picked.topic, picked.partition, picked.at_offset, picked.index)
                  AS k (topic, partition, at_offset, index)
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
    RETURNING p.*
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
    SELECT t.topic, t.partition, t."offset", t.index, t.lane, 'aged_out',
           letter_detail(format('parked for %s s', floor(extract(epoch FROM now() - t.parked_at))), octet_length(t.payload)),
           substr(t.payload, 1, 65536), t.traceparent
    FROM taken t
    ON CONFLICT DO NOTHING
)
SELECT (SELECT count(*) FROM taken) AS rows,
       (SELECT string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n')
        FROM (SELECT gateway, count(*) AS n FROM taken WHERE gateway IS NOT NULL GROUP BY gateway) g) AS gateways;
