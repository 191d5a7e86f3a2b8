-- Moves one dead letter to parked_event, in one statement, hence exactly once. The daemon wakes and counts it like
-- any other. A letter for a whole record (index -1) may have several events. Letter: $1 text topic, $2 int4
-- partition, $3 int8 offset, $4 int4 index of the letter, $5 int4 lanes of a topic that is not pinned. Events: $6
-- int4[] index in the record, $7 text[] message id, $8 int2[] status or flag code, $9 timestamptz[] time, $10 bytea[]
-- payload, $11 int4[] flags that it names beside its status. Origin: $12 text[] gateway, $13 text[] organisation, $14
-- text[] account, $15 text[] campaign, $16 text[] the gateway's id where it came under that. Parts: $17 int2[] part,
-- $18 int2[] parts. Further: $19 text[] class of the reason, $20 int8[] key by which echoes are recognised, $21
-- int2[] machines whose opens and clicks count beside. Returns taken (false: the letter was gone) and moved (events
-- parked). An event that is parked already stays as it is.
WITH
taken AS (
    DELETE FROM dead_letter d
    WHERE d.topic = $1::text AND d.partition = $2::int4 AND d."offset" = $3::int8 AND d.index = $4::int4
    RETURNING d.topic, d.partition, d."offset", d.traceparent
),
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane,
                              message_id, status, flags, at, payload, traceparent,
                              gateway, org_id, account, campaign_id, gateway_id,
                              part, parts, reason_class, event_key, machines)
    SELECT t.topic, t.partition, t."offset", e.index,
           hashtextextended(e.message_id COLLATE "C", 0)
               & (COALESCE((SELECT c.lanes FROM consumer_topic c WHERE c.topic = t.topic), $5::int4) - 1),
           e.message_id, e.status, e.flags, e.at, e.payload, t.traceparent,
           e.gateway, e.org_id, e.account, e.campaign_id, e.gateway_id, e.part, e.parts,
           e.reason_class, e.event_key, e.machines
    FROM taken t, unnest($6::int4[], $7::text[], $8::int2[], $9::timestamptz[], $10::bytea[], $11::int4[],
                           $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::int2[], $18::int2[],
                           $19::text[], $20::int8[], $21::int2[])
                  AS e (index, message_id, status, at, payload, flags,
                        gateway, org_id, account, campaign_id, gateway_id,
                        part, parts, reason_class, event_key, machines)
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS taken, (SELECT count(*) FROM parked) AS moved;
