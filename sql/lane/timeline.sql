-- Writes what the receipts of a batch did (timeline.retention): arrays with an element for each. Parameters: $1
-- text[] message ids, $2 text[] topics, $3 int4[] partitions, $4 int8[] offsets, $5 int4[] indexes in the record, $6
-- int2[] codes, $7 timestamptz[] times. Change: $8 int2[] the message's status before and $9 after the batch (NULL:
-- it was not there, or the wake decides), $10 int4[] flags that it gained. Further: $11 text[] accounts, $12 text[]
-- reasons, $13 text[] their classes, $14 text[] ids of the events, $15 int2[] parts, $16 int2[] totals of parts, $17
-- text[] what the receipt waits for although its message is there.
INSERT INTO message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained,
                              gateway, reason, reason_class, event_id, part, parts, waited)
SELECT *
FROM unnest($1::text[], $2::text[], $3::int4[], $4::int8[], $5::int4[],
            $6::int2[], $7::timestamptz[], $8::int2[], $9::int2[], $10::int4[],
            $11::text[], $12::text[], $13::text[], $14::text[], $15::int2[], $16::int2[], $17::text[]);
