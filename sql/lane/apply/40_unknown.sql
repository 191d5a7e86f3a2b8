-- The raw events of messages that are unknown or of another organisation; the arrays are sliced here and nowhere else,
-- so known messages cost nothing. An id may stand in two rows, of partitions by time: a receipt that one of them took
-- is not refused by the other, and none is refused twice. Parked are also the receipts of a message that name several
-- organisations, and those beside refused ones that name none: the wake decides one by one; and those of a message of
-- which a part is delivered: the wake knows whether all parts are. A message that has been deleted is not waited for;
-- of one that was erased nothing is kept.
, x AS MATERIALIZED (
    SELECT r.id, ($25::int4[])[r.n] AS kind, r.status IS NOT NULL AS known, r.org, e.kept, i AS event,
           CASE WHEN r.fate = 'other_organisation' AND e.kept[1] IS NULL THEN 'parked'
                WHEN e.erased IS NOT NULL THEN 'retired_message' ELSE r.fate END AS fate, e.erased IS TRUE AS erased,
           ($16::text[])[e.record] AS topic, ($17::int4[])[e.record] AS partition, ($18::int8[])[e.record] AS at_offset,
           ($13::int4[])[i] AS index, ($14::int4[])[i] AS first, ($14::int4[])[i + 1] - ($14::int4[])[i] AS size, record_link($19::bytea, e.record) AS link
    FROM (SELECT DISTINCT ON (f.n) f.* FROM r f
          WHERE f.fate <> 'known' AND f.n NOT IN (SELECT k.n FROM r k WHERE k.fate = 'known') ORDER BY f.n) r,
         generate_series(($9::int4[])[r.n], ($9::int4[])[r.n + 1] - 1) i,
         LATERAL (SELECT ($12::int4[])[i] AS record, batch_texts($15::bytea, $24::int4[], i) AS kept, CASE WHEN r.status IS NULL THEN message_is_erased(r.id) END AS erased) e
),
-- A position can come again only after an operator's reset; then the row that is there stays.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id, status, flags, at, payload, traceparent, gateway,
                              org_id, account, campaign_id, gateway_id, reason_class, event_key, part, parts)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4, x.id, ($10::int2[])[x.event], COALESCE(($22::int4[])[x.event], 0),
           ($11::timestamptz[])[x.event], substr($15::bytea, x.first, x.size), x.link, x.kept[7], x.kept[1], x.kept[2], x.kept[3], x.kept[4], x.kept[5], x.kept[6]::int8,
           NULLIF(split_part(x.kept[8], '/', 1), '')::int2, NULLIF(split_part(x.kept[8], '/', 2), '')::int2
    FROM x WHERE x.fate = 'parked' AND cardinality($13::int4[]) > 0 ON CONFLICT DO NOTHING
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, at, detail, payload, traceparent)
    SELECT x.topic, x.partition, x.at_offset, x.index, $20::int4, x.fate, ($11::timestamptz[])[x.event],
           letter_detail(fate_detail(x.fate, x.kept[1], x.org), CASE WHEN NOT x.erased THEN x.size END), CASE WHEN NOT x.erased THEN substr($15::bytea, x.first, LEAST(x.size, 65536)) END, x.link
    FROM x WHERE x.fate <> 'parked' AND cardinality($13::int4[]) > 0 ON CONFLICT DO NOTHING
)
