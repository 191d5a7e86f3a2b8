-- One step of `receiptd retire`: deletes the messages in a range of pages that are older than their retention.
-- Returns rows (deleted). The trigger books them in the same transaction. Variables: part_schema, part_table, and the
-- names there of message_id, org_id, campaign_id, created_at. Parameters: $1 tid first, $2 tid end (excluded), $3
-- text[] campaigns with a retention of their own and $4 int8[] theirs in ms. Further: $5 text[] and $6 int8[]
-- likewise of organisations, $7 int8 that of all others; 0: without limit.
--
-- A row that a batch holds is left to the next run, so a step waits for no batch and cannot be part of a deadlock.
-- The rows go by their key and through the inbox, since the triggers are on the whole table. An array keeps this a
-- look-up for each of them. Where an id stands in two partitions, the other row stays: hence the time.
WITH picked AS (
    SELECT t.:"message_id"::text AS id, t.:"created_at" AS at
    FROM ONLY :"part_schema".:"part_table" t
    LEFT JOIN unnest($3::text[], $4::int8[]) AS c (name, keep) ON c.name = t.:"campaign_id"::text
    LEFT JOIN unnest($5::text[], $6::int8[]) AS o (name, keep) ON o.name = t.:"org_id"::text
    WHERE t.ctid >= $1::tid AND t.ctid < $2::tid
      AND t.:"created_at" < now() - NULLIF(COALESCE(c.keep, o.keep, $7::int8), 0) * interval '1 millisecond'
    FOR UPDATE OF t SKIP LOCKED
),
gone AS (
    DELETE FROM message_inbox m
    WHERE m.message_id = ANY (ARRAY(SELECT p.id FROM picked p))
      AND (m.message_id, m.created_at) IN (SELECT p.id, p.at FROM picked p)
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
