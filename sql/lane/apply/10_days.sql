-- apply_days, in place of apply for a batch whose receipts name days, of a table in ranges of created_at that has a recent set: $31 int4[] days. The same parameters otherwise.
-- It looks for a message first in the UTC day that its receipts name, so PostgreSQL prunes to that day's partition while it runs. Those that it neither changed nor
-- knows, and those without a day, go to the two stages of 10_recent.sql. All three see one snapshot, so a wrong day costs time alone. A day is read in the session's
-- time zone nowhere: its bounds are moments. Transactions lock the messages of each stage by id: two that find the same messages in different stages
-- may wait for each other in a circle, and PostgreSQL ends one, which is sent again.
-- typed: parameters of other forms, so that they have a type here.
WITH
typed AS (SELECT $25::int2[], $26::int4, $27::int8[], $28::int4[], $29::text[], $30::text[]),
on_day AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, e.top), flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END, updated_at = now()
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[], $31::int4[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, day, n)
    WHERE m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org) AND (e.top > m.status OR (e.mask & ~m.flags) <> 0)
      AND m.created_at >= to_timestamp(e.day * 86400.0) AND m.created_at < to_timestamp((e.day + 1) * 86400.0)
