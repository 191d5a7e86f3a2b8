-- Appends the cells that a batch counts, one row of arrays for each kind (include/receiptd/core/rules/rules.h).
-- Kinds: $1 text[] names, $2 int4[] first and $3 int4[] last cell of each (1-based).
-- Cells: $4 text[] campaigns, $5 timestamptz[] times (-infinity: not by time), $6 text[] keys,
-- $7 int2[] statuses, $8 int8[] messages, $9 int8[] events. $5 and $6 may end earlier: cells behind
-- that have neither time nor key.
INSERT INTO counter_delta (kind, campaign_id, at, key, status, messages, events)
SELECT k.kind, ($4::text[])[k.first:k.last], NULLIF(($5::timestamptz[])[k.first:k.last], '{}'),
       NULLIF(($6::text[])[k.first:k.last], '{}'), ($7::int2[])[k.first:k.last], ($8::int8[])[k.first:k.last],
       ($9::int8[])[k.first:k.last]
FROM unnest($1::text[], $2::int4[], $3::int4[]) AS k (kind, first, last);
