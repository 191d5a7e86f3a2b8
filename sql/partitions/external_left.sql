-- Partitions, by their state, of an inbox whose partitions receiptd does not make: $1 text[] states
-- (views/inbox_partition_state). Columns: schema, name (of the table that is there), noted (the name that it had in
-- the inbox); message_id, campaign_id, status, flags: its columns; state. Column old: it was booked so long ago that
-- no audit reads it any longer.
SELECT s.part_schema AS schema, s.part_name AS name, s.name AS noted,
       s.message_id, s.campaign_id, s.status, s.flags, s.state,
       COALESCE(s.booked_at < now() - interval '10 minutes', false) AS old
FROM inbox_partition_state s
WHERE s.state = ANY ($1::text[])
ORDER BY s.name;
