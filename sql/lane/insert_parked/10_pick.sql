-- Policy `unknown: insert`: bare rows for the messages of parked receipts that have waited for an alias, or for the
-- platform's row, as long as they are to: those that came under the gateway's id, that an alias has led to another
-- message, or that were redriven. The next wake applies them. After a fence with new = expected, and after address.sql.
-- $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4 most rows, $5 int8 how long in ms. Returns rows
-- (inserted).
WITH
picked AS (
    SELECT p.message_id, p.org_id, p.campaign_id, p.topic, p.partition, p."offset" AS at_offset, p.index
    FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
    JOIN parked_event p ON p.lane = $3::int4 AND p.topic = w.topic AND p.partition = w.partition
