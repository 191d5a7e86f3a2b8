-- Parks receipts whose message is not there, and those of which only the wake can say what they count as. NULL: a
-- receipt has none. Parameters: $1 int4 lane; then arrays with an element for each receipt. Place: $2 text[] topics,
-- $3 int4[] partitions, $4 int8[] offsets, $5 int4[] indexes in the record. Event: $6 text[] message ids, $7 int2[]
-- codes, $8 int4[] flags, $9 timestamptz[] times, $10 bytea[] payloads, $11 text[] traceparents. Origin: $12 text[]
-- gateways (for figures: the one that all receipts of the message name), $13 text[] organisations, $14 text[]
-- accounts, $15 text[] campaigns, $16 text[] the gateway's ids where the receipts came under these. Further: $17
-- text[] classes of reasons, $18 int8[] keys of the events, $19 int2[] parts, $20 int2[] totals of parts, $21 int2[]
-- machines whose opens and clicks count beside. A position can come again only after an operator's reset; then the
-- row that is there stays.
INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id,
                          status, flags, at, payload, traceparent, gateway,
                          org_id, account, campaign_id, gateway_id, reason_class, event_key, part, parts, machines)
SELECT p.topic, p.partition, p.at_offset, p.index, $1::int4, p.message_id,
       p.status, p.flags, p.at, p.payload, p.traceparent, p.gateway,
       p.org_id, p.account, p.campaign_id, p.gateway_id, p.reason_class, p.event_key, p.part, p.parts, p.machines
FROM unnest($2::text[], $3::int4[], $4::int8[], $5::int4[], $6::text[],
            $7::int2[], $8::int4[], $9::timestamptz[], $10::bytea[], $11::text[],
            $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],
            $17::text[], $18::int8[], $19::int2[], $20::int2[], $21::int2[])
     AS p (topic, partition, at_offset, index, message_id, status, flags, at, payload, traceparent, gateway,
           org_id, account, campaign_id, gateway_id, reason_class, event_key, part, parts, machines)
ON CONFLICT DO NOTHING;
