-- The raw events of unknown messages; the arrays are sliced here and nowhere else, so known messages cost nothing.
, x AS MATERIALIZED (
    SELECT r.id, r.signature, i AS event, e.record,
           NULLIF(rtrim(convert_from(substr($19::bytea, 55 * e.record - 54, 55), 'UTF8')), '') AS link
    FROM r, generate_series(($9::int4[])[r.n], ($9::int4[])[r.n + 1] - 1) i, LATERAL (SELECT ($12::int4[])[i] AS record) e
    WHERE NOT r.known
),
-- A position can come again only after an operator's reset; then the row that is there stays.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id, status, flags, at, payload,
                              traceparent, gateway)
    SELECT ($16::text[])[x.record], ($17::int4[])[x.record], ($18::int8[])[x.record], ($13::int4[])[x.event], $20::int4,
           x.id, ($10::int2[])[x.event], COALESCE(($22::int4[])[x.event], 0), ($11::timestamptz[])[x.event],
           substr($15::bytea, ($14::int4[])[x.event], ($14::int4[])[x.event + 1] - ($14::int4[])[x.event]),
           x.link, ($23::text[])[x.signature]
    FROM x
    WHERE $21::text <> 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
    SELECT ($16::text[])[x.record], ($17::int4[])[x.record], ($18::int8[])[x.record], ($13::int4[])[x.event], $20::int4,
           'unknown_message', CASE WHEN l.size > 65536 THEN format('the first of %s bytes', l.size) END,
           substr($15::bytea, ($14::int4[])[x.event], LEAST(l.size, 65536)), x.link
    FROM x, LATERAL (SELECT ($14::int4[])[x.event + 1] - ($14::int4[])[x.event] AS size) l
    WHERE $21::text = 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
)
