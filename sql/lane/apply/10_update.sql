-- The batch: one statement, one snapshot. It applies the folded receipts, decides once for each message whether it is known, parks what is
-- not, and appends one row of counters. The files of this folder, in order, are the statement; src/postgres/lane_statements.c lists which
-- of them belong to which variant, `receiptd generate sql` prints them.
--
-- Messages, sorted by id, one entry each: $1 text[] ids, $2 int2[] highest status, $3 int4[] flags, $4 timestamptz[] event
-- time of that status, $5 int4[] signature (1-based): which statuses the message's receipts name, how often each.
-- Signatures: $6 int4[] first entry of each (1-based, one more than there are), $7 int2[] codes, $8 int4[] counts.
-- Raw events, grouped by message: $9 int4[] first event of each message (1-based, one more), $10 int2[] code,
-- $11 timestamptz[] time, $12 int4[] record (1-based), $13 int4[] index in the record, $14 int4[] first payload byte
-- (1-based, one more), $15 bytea all payloads. Only unknown messages need them: without them (all but $9 are empty)
-- the batch is rolled back with RD004 if there are some.
-- Records: $16 text[] topic, $17 int4[] partition, $18 int8[] offset, empty without raw events; $19 bytea traceparents: 55 bytes for each
-- record, blanks for one without; empty if no record has one, else $12 is there without raw events, too.
-- $20 int4 lane, $21 text what to do with unknown messages: dead-letter; anything else parks them.
-- $22 int4[] flags that raw events name beside their status, as a mask; empty: none does.
-- $23 text[] organisations that the messages' receipts name: NULL: none; empty: they differ, or one says that a part of the message is delivered, or may be of a machine. An empty array: no message has one.
-- $24 int4[] first byte in $15, behind the payloads, of eight texts of each raw event (1-based, one more): organisation, account (the
-- gateway that it names), campaign, the gateway's id where the receipt came under that, class of the reason, key of the event, for figures
-- the name of the one gateway of its message's receipts, part, total, policy and ms for machines ("2/3//", "//1/5000"); empty: none. Only with raw events.
-- Only with 91_unsubscribed.sql: $25 int2[] statuses of $2, each once, $26 int4 all flags of $3.
-- Only with rules (45_receipts.sql, ../rules), which also need $10, $11 and $22 without raw events: $27 int8[] keys of the raw events, by which echoes
-- are recognised, $28 int4[] facet of each raw event (1-based): $29 text[] gateways, $30 text[] reasons of the facets, NULL: none.
-- Only with 10_days.sql, which has all the others, too: $31 int4[] days on which the messages were inserted, in UTC, since 1970-01-01, as receipts have it; NULL: none says so.
-- src/postgres/encode_batch.c writes these parameters by one table in the same order; tests/unit/test_encode_batch.c compares the two.
--
-- 90_answer.sql says what it returns.
WITH
-- The old values are written by the statement itself (both, on every update) and come back by RETURNING: taken from a join
-- they would be those of the snapshot, and wrong exactly when another writer was waited for. The target is found by its
-- key, never by ctid: after such a wait the row is elsewhere. Generic plan: nested loop in the order of the array, which is
-- the order in which all transactions lock messages. wake/10_apply.sql has the same UPDATE: change both.
-- A receipt that names an organisation changes a message of that organisation alone.
u AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END, updated_at = now()
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, n)
    WHERE m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org) AND (e.top > m.status OR (e.mask & ~m.flags) <> 0)
