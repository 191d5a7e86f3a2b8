-- apply_days, in place of apply for a batch whose receipts name days, of a table in ranges of created_at that has a
-- recent set: $42 int4[] days. The same parameters otherwise. It looks for a message first in the UTC day that its
-- receipts name, so PostgreSQL prunes to that day's partition while it runs. Those that it neither changed nor knows,
-- and those without a day, go to the two stages of 10_recent.sql. All three see one snapshot, so a wrong day costs time
-- alone. A day is read in the session's time zone nowhere: its bounds are moments. Transactions lock the messages of
-- each stage by id: two that find the same messages in different stages may wait for each other in a circle, and
-- PostgreSQL ends one, which is sent again. typed: parameters of other forms, so that they have a type here.
WITH
typed AS (SELECT $26::int2[], $27::int4, $28::int8[], $29::int4[], $30::text[], $31::text[], $32::int8[], $33::int8[],
                 $34::int4[], $35::int4[], $36::int2[], $37::int4[], $38::timestamptz[], $39::int4[], $40::int2[], $41::bytea),
on_day AS (
    UPDATE message_inbox m
