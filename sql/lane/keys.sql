-- Stores the keys of a batch's receipts, by which copies are recognised (include/receiptd/core/keys.h). All
-- transactions store them in the order in which they come: by day, message, event. Parameters: $1 int8[] hash of the
-- message, $2 int8[] event, $3 timestamptz[] time of the receipt, $4 text the window. Answers a row for each key that
-- was not stored: n (1-based), there. True: a transaction has stored it before. False: the receipt's time is outside
-- of the window.
WITH asked AS MATERIALIZED (
    SELECT k.n, (k.at AT TIME ZONE 'UTC')::date AS day, k.message, k.event,
           k.at >= date_trunc('day', now(), 'UTC') - $4::text::interval AND k.at < now() + interval '1 day' AS inside
    FROM unnest($1::int8[], $2::int8[], $3::timestamptz[]) WITH ORDINALITY AS k (message, event, at, n)
),
stored AS (
    INSERT INTO receipt_counted (day, message, event)
    SELECT a.day, a.message, a.event FROM asked a WHERE a.inside ORDER BY a.n
    ON CONFLICT DO NOTHING RETURNING day, message, event
)
-- Most batches have no copy: then as many were stored as there are, and none is looked up. NOT IN is a hashed subplan;
-- a join of CTEs would be a nested loop, since a generic plan expects few rows.
SELECT a.n::int4 AS n, a.inside AS there
FROM asked a
WHERE NOT a.inside
   OR ((SELECT count(*) FROM stored) < (SELECT count(*) FROM asked i WHERE i.inside)
       AND ((a.day, a.message, a.event) IN (SELECT s.day, s.message, s.event FROM stored s)) IS NOT TRUE);
