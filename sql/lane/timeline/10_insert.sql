-- What the receipts of a batch did, right after apply in its transaction (timeline.retention). A row that this
-- transaction has changed says so by its time, and keeps what it was before. Messages: $1 text[] ids, $2 int4[] first
-- event of each (1-based, one more than there are). Events: $3 int2[] code, $4 timestamptz[] time, $5 int4[] record
-- (1-based), $6 int4[] index in the record. Records: $7 text[] topic, $8 int4[] partition, $9 int8[] offset. $10 text[]
-- organisations of the messages' receipts, as in apply/10_update.sql: a receipt of another one did nothing, and those
-- of '' wait for the wake. What events say of themselves: $11 text[] account, $12 text[] reason, $13 text[] its class,
-- $14 text[] event's id, $15 int2[] part, $16 int2[] total of parts, $17 int2[] what only the wake can count: 1 a
-- delivered part. Of a message that was erased nothing is stored.
INSERT INTO message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained,
                              gateway, reason, reason_class, event_id, part, parts, waited)
SELECT e.id, ($7::text[])[($5::int4[])[g.i]], ($8::int4[])[($5::int4[])[g.i]], ($9::int8[])[($5::int4[])[g.i]],
       ($6::int4[])[g.i], ($3::int2[])[g.i], ($4::timestamptz[])[g.i],
       CASE WHEN e.org = '' THEN NULL WHEN m.updated_at = now() THEN m.prev_status ELSE m.status END,
       CASE WHEN e.org = '' THEN NULL ELSE m.status END,
       CASE WHEN m.updated_at = now() AND e.org IS DISTINCT FROM '' THEN m.flags & ~m.prev_flags ELSE 0 END,
       ($11::text[])[g.i], ($12::text[])[g.i], ($13::text[])[g.i], ($14::text[])[g.i],
       NULLIF(($15::int2[])[g.i], 0), NULLIF(($16::int2[])[g.i], 0),
       CASE WHEN e.org = '' AND m.message_id IS NOT NULL
            THEN CASE ($17::int2[])[g.i] WHEN 1 THEN 'part' ELSE 'beside' END END
FROM unnest($1::text[], $10::text[]) WITH ORDINALITY AS e (id, org, n)
