-- Policy `unknown: insert`, right after the batch: inserts bare rows for its messages that have none. Returns rows
-- (inserted). Receipts of the new rows have just been parked. The next wake finds the rows and applies them: so there
-- is one way in which a receipt is counted late, not two. Messages that were known, or that the platform has inserted
-- meanwhile, stay as they are. Parameter $1 text[]: message ids, sorted, the order in which all transactions lock.
-- Parameters $2 text[] organisations, $3 text[] campaigns: from the first of the message's receipts that names one
-- (NULL: none does).
--
-- Only unknown messages come to the INSERT: a constraint that a bare row breaks must not concern those that have a
-- row. A message that was deleted does not come back, nor one of a partition that leaves the inbox. Both tables stand
-- in this statement. So it has locked the partition, or waited until it is booked, before it takes its snapshot.
WITH made AS (
    INSERT INTO message_inbox (message_id, org_id, campaign_id)
    SELECT w.message_id, w.org_id, w.campaign_id
    FROM unnest($1::text[], $2::text[], $3::text[]) AS w (message_id, org_id, campaign_id)
    WHERE (SELECT true FROM message_inbox m WHERE m.message_id = w.message_id LIMIT 1) IS NULL
      AND (SELECT true FROM inbox_detached d WHERE d.message_id = w.message_id) IS NULL
      AND NOT message_is_retired(w.message_id)
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) AS rows FROM made;
