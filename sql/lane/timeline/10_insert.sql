-- What the receipts of a batch did, right after apply in its transaction (timeline.retention). A row that this transaction
-- has changed says so by its time, and keeps what it was before.
-- Messages: $1 text[] ids, $2 int4[] first event of each (1-based, one more than there are). Events: $3 int2[] code,
-- $4 timestamptz[] time, $5 int4[] record (1-based), $6 int4[] index in the record. Records: $7 text[] topic,
-- $8 int4[] partition, $9 int8[] offset. $10 text[] organisations of the messages' receipts, as in apply/10_update.sql: a receipt of
-- another one did nothing. Of a message that was erased nothing is stored.
INSERT INTO message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained)
SELECT e.id, ($7::text[])[($5::int4[])[g.i]], ($8::int4[])[($5::int4[])[g.i]], ($9::int8[])[($5::int4[])[g.i]],
       ($6::int4[])[g.i], ($3::int2[])[g.i], ($4::timestamptz[])[g.i],
       CASE WHEN m.updated_at = now() THEN m.prev_status ELSE m.status END, m.status,
       CASE WHEN m.updated_at = now() THEN m.flags & ~m.prev_flags ELSE 0 END
FROM unnest($1::text[], $10::text[]) WITH ORDINALITY AS e (id, org, n)
