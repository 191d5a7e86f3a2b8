-- Appends the cells that rules have counted, one row of arrays for each kind. The kinds are those of
-- src/core/rules/rules.h.
-- Kinds: $1 text[] names, $2 int4[] first and $3 int4[] last cell of each (1-based).
-- Cells: $4 text[] campaigns, $5 timestamptz[] begin of the hour (-infinity: not by time), $6 text[] keys, $7 int2[]
-- statuses, $8 int8[] messages, $9 int8[] events.
INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
SELECT k.kind, ($4::text[])[k.first:k.last], ($5::timestamptz[])[k.first:k.last], ($6::text[])[k.first:k.last],
       ($7::int2[])[k.first:k.last], ($8::int8[])[k.first:k.last], ($9::int8[])[k.first:k.last]
FROM unnest($1::text[], $2::int4[], $3::int4[]) AS k (kind, first, last);
