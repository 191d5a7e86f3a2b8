-- The first parked row that a wake would take, which PostgreSQL refuses to apply: to dead_letter instead, never
-- counted. $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4 most rows, $5 text detail. Returns rows
-- (handled), and gateways, as wake does.
WITH
picked AS (
    SELECT array_agg(k.topic) AS topic, array_agg(k.partition) AS partition, array_agg(k.at_offset) AS at_offset,
           array_agg(k.index) AS index
    FROM parked_applicable($1::text[], $2::int4[], $3::int4, $4::int4) k
),
taken AS (
    DELETE FROM parked_event p
    USING picked, unnest(picked.topic, picked.partition, picked.at_offset, picked.index)
                  AS k (topic, partition, at_offset, index)
    WHERE p.topic = k.topic AND p.partition = k.partition AND p."offset" = k.at_offset AND p.index = k.index
    RETURNING p.*
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent, at)
    SELECT t.topic, t.partition, t."offset", t.index, t.lane, 'database',
           letter_detail($5::text, octet_length(t.payload)),
           substr(t.payload, 1, 65536), t.traceparent, t.at
    FROM taken t
    ON CONFLICT DO NOTHING
)
SELECT (SELECT count(*) FROM taken) AS rows,
       (SELECT string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n')
        FROM (SELECT gateway, count(*) AS n FROM taken WHERE gateway IS NOT NULL GROUP BY gateway) g) AS gateways;
