-- Erases some messages and books that in the record: $1 text[] ids, $2 text customer and $3 text the column of
-- customers (NULL: none), $4 int8 the erasure. Returns how many rows of what went; and one row for each of the
-- gateways' ids, account and gateway_id, or one where both are NULL.
WITH gone AS MATERIALIZED (
    SELECT * FROM erase_messages($1::text[], $2::text, $3::text)
),
booked AS (
    UPDATE erasure e
    SET messages = e.messages + g.messages, parked = e.parked + g.parked, timeline = e.timeline + g.timeline,
        aliases = e.aliases + g.aliases, runs = e.runs + g.runs, folds = e.folds + g.folds
    FROM gone g WHERE e.id = $4::int8
)
SELECT g.messages, g.parked, g.timeline, g.aliases, g.runs, g.folds, w.account, w.gateway_id
FROM gone g LEFT JOIN LATERAL unnest(g.accounts, g.gateway_ids) AS w (account, gateway_id) ON true;
