-- Appends the transitions of the batch for the status stream: one row of arrays. An array of one element holds for all
-- messages, and an empty one says that none has a value. Parameters: $1 text[] message ids, $2 text[] organisations, $3
-- text[] campaigns, $4 int2[] status before, $5 int2[] status now, $6 int4[] flags now, $7 int4[] flags gained, $8
-- timestamptz[] event times, $9 text[] gateways, $10 text[] classes of reasons, $11 text[] columns of the inbox as
-- JSON, $12 text[] traceparents. This comes after decide, which has locked the messages (sql/tables/stream.sql).
INSERT INTO stream_event (ids, orgs, campaigns, old, new, flags, gained, times, gateways, reasons, columns, traces)
VALUES ($1::text[], NULLIF($2::text[], '{}'), NULLIF($3::text[], '{}'), $4::int2[], $5::int2[], $6::int4[],
        $7::int4[], $8::timestamptz[], NULLIF($9::text[], '{}'), NULLIF($10::text[], '{}'),
        NULLIF($11::text[], '{}'), NULLIF($12::text[], '{}'));
