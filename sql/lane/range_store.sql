-- Stores the ranges of a batch: receipts of all messages to a person up to a time. Parameters: $1 text[] topics, $2
-- int4[] partitions, $3 int8[] offsets, $4 int4[] indexes, $5 int4 lane, $6 text[] accounts, $7 text[] recipients, $8
-- text[] organisations (NULL: none). Further: $9 int2[] statuses, $10 timestamptz[] until, $11 timestamptz[] event
-- times, $12 text[] gateways and $13 text[] traceparents (NULL: none). A position that comes again after an
-- operator's reset finds the row that is there, or makes one: it raises what it still can.
INSERT INTO range_receipt (topic, partition, "offset", index, lane, account,
                           recipient, org_id, status, until, at, gateway, traceparent)
SELECT r.topic, r.partition, r.at_offset, r.index, $5::int4, r.account,
       r.recipient, r.org_id, r.status, r.until, r.at, r.gateway, r.traceparent
FROM unnest($1::text[], $2::int4[], $3::int8[], $4::int4[], $6::text[], $7::text[],
            $8::text[], $9::int2[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[])
     AS r (topic, partition, at_offset, index, account, recipient, org_id, status, until, at, gateway, traceparent)
ON CONFLICT DO NOTHING;
