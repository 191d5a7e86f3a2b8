-- Takes back keys that this transaction has stored, since their messages are not known. When the receipts are applied
-- later, they come for the first time.
-- $1 int8[] hash of the message, $2 int8[] event, $3 timestamptz[] time of the
-- receipt.
DELETE FROM receipt_counted r
USING unnest($1::int8[], $2::int8[], $3::timestamptz[]) AS k (message, event, at)
WHERE r.day = (k.at AT TIME ZONE 'UTC')::date AND r.message = k.message AND r.event = k.event;
