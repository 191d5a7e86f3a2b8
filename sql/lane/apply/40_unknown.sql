-- The raw events of messages that are unknown or of another organisation; the arrays are sliced here and nowhere else, so known messages
-- cost nothing. Parked are also the receipts of a message that name several organisations, and those beside refused ones that name none:
-- the wake decides one by one.
, x AS MATERIALIZED (
    SELECT r.id, r.signature, r.org,
           CASE WHEN r.otherwise = 'refused' AND batch_text($15::bytea, $25::int4[], 4 * i - 3) IS NULL THEN 'parked'
                ELSE r.otherwise END AS otherwise,
           i AS event, ($16::text[])[e.record] AS topic, ($17::int4[])[e.record] AS partition,
           ($18::int8[])[e.record] AS at_offset, ($13::int4[])[i] AS index, ($14::int4[])[i] AS first,
           ($14::int4[])[i + 1] - ($14::int4[])[i] AS size, record_link($19::bytea, e.record) AS link
    FROM r, generate_series(($9::int4[])[r.n], ($9::int4[])[r.n + 1] - 1) i, LATERAL (SELECT ($12::int4[])[i] AS record) e
    WHERE NOT r.known
),
-- A position can come again only after an operator's reset; then the row that is there stays.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id, status, flags, at, payload, traceparent, gateway,
                              org_id, account, campaign_id, gateway_id)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4, x.id, ($10::int2[])[x.event], COALESCE(($22::int4[])[x.event], 0),
           ($11::timestamptz[])[x.event], substr($15::bytea, x.first, x.size), x.link, ($23::text[])[x.signature],
           batch_text($15::bytea, $25::int4[], 4 * x.event - 3), batch_text($15::bytea, $25::int4[], 4 * x.event - 2),
           batch_text($15::bytea, $25::int4[], 4 * x.event - 1), batch_text($15::bytea, $25::int4[], 4 * x.event)
    FROM x WHERE x.otherwise = 'parked' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4,
           CASE x.otherwise WHEN 'dead' THEN 'unknown_message' ELSE 'other_organisation' END,
           NULLIF(concat_ws('; ', CASE WHEN x.otherwise = 'refused' THEN
                                organisations_differ(batch_text($15::bytea, $25::int4[], 4 * x.event - 3), x.org) END,
                            CASE WHEN x.size > 65536 THEN format('the first of %s bytes', x.size) END), ''),
           substr($15::bytea, x.first, LEAST(x.size, 65536)), x.link
    FROM x WHERE x.otherwise <> 'parked' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
)
