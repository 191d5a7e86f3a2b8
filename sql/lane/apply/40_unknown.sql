-- The raw events of unknown messages; the arrays are sliced here and nowhere else, so known messages cost nothing.
, x AS MATERIALIZED (
    SELECT r.id, r.signature, i AS event, ($16::text[])[e.record] AS topic, ($17::int4[])[e.record] AS partition,
           ($18::int8[])[e.record] AS at_offset, ($13::int4[])[i] AS index, ($14::int4[])[i] AS first,
           ($14::int4[])[i + 1] - ($14::int4[])[i] AS size, record_link($19::bytea, e.record) AS link
    FROM r, generate_series(($9::int4[])[r.n], ($9::int4[])[r.n + 1] - 1) i, LATERAL (SELECT ($12::int4[])[i] AS record) e
    WHERE NOT r.known
),
-- A position can come again only after an operator's reset; then the row that is there stays.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id, status, flags, at, payload, traceparent, gateway)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4, x.id, ($10::int2[])[x.event], COALESCE(($22::int4[])[x.event], 0),
           ($11::timestamptz[])[x.event], substr($15::bytea, x.first, x.size), x.link, ($23::text[])[x.signature]
    FROM x WHERE $21::text <> 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4, 'unknown_message',
           CASE WHEN x.size > 65536 THEN format('the first of %s bytes', x.size) END,
           substr($15::bytea, x.first, LEAST(x.size, 65536)), x.link
    FROM x WHERE $21::text = 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
)
