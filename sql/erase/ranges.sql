-- Ranges of the persons of some messages, before these are erased, in the same transaction; they count as parked
-- receipts. Variables: range_recipient, range_account. $1 text[] message ids, $2 int8 the erasure. Returns rows.
WITH gone AS (
    DELETE FROM range_receipt r
    USING (SELECT DISTINCT m.:"range_account" AS account, m.:"range_recipient" AS recipient
           FROM message_inbox m
           WHERE m.message_id = ANY ($1::text[])) p
    WHERE r.account = p.account AND r.recipient = p.recipient
    RETURNING 1
),
booked AS (
    UPDATE erasure e SET parked = e.parked + (SELECT count(*) FROM gone) WHERE e.id = $2::int8
)
SELECT count(*) AS rows FROM gone;
