-- apply_days, in place of apply for a batch whose receipts name days, of a table in ranges of created_at that has a recent set: $37 int4[] days. The same parameters otherwise.
-- It looks for a message first in the UTC day that its receipts name, so PostgreSQL prunes to that day's partition while it runs. Those that it neither changed nor
-- knows, and those without a day, go to the two stages of 10_recent.sql. All three see one snapshot, so a wrong day costs time alone. A day is read in the session's
-- time zone nowhere: its bounds are moments. Transactions lock the messages of each stage by id: two that find the same messages in different stages
-- may wait for each other in a circle, and PostgreSQL ends one, which is sent again.
-- typed: parameters of other forms, so that they have a type here.
WITH
typed AS (SELECT $25::int2[], $26::int4, $27::int8[], $28::int4[], $29::text[], $30::text[], $31::int4[], $32::int4[], $33::timestamptz[], $34::int4[], $35::int2[], $36::bytea),
on_day AS (
    UPDATE message_inbox m
