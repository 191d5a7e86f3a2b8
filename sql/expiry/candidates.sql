-- The messages that one step of `receiptd expire` takes: nothing came for them in time. The rest of the transaction
-- treats each as if a receipt had named its new status: decide changes it, C counts, and flight 2 writes
-- (src/postgres/flights.c).
--
-- Variables: part_schema, part_table, and the names there of message_id, status, updated_at. Parameters: $1 tid first
-- and $2 tid end (excluded) of the pages, $3 jsonb rules, of which the first that fits a message counts. A rule has
-- n, column and value (null: all messages), low, high and after (ms; 0: never). A status from low up to, but without,
-- high becomes high. Returns, in the order of ids: message_id, status (the new one), at (now, in µs).
--
-- It locks each row in the version that is overdue: where another transaction has just changed the row, PostgreSQL
-- tries the conditions again. So decide, which has a younger snapshot, finds the same messages. A receipt that comes
-- in between waits for the row, and then meets the new status. The next run takes rows that a batch holds now: a step
-- waits for no batch.
WITH
rules AS (
    SELECT r.*
    FROM jsonb_to_recordset($3::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
),
picked AS MATERIALIZED (
    SELECT t.:"message_id"::text AS id
    FROM ONLY :"part_schema".:"part_table" t
    WHERE t.ctid >= $1::tid AND t.ctid < $2::tid
      AND t.:"status" >= (SELECT min(r.low) FROM rules r WHERE r.after > 0)
      AND t.:"status" < (SELECT max(r.high) FROM rules r WHERE r.after > 0)
      AND t.:"updated_at" < now() - interval '1 millisecond' * (SELECT min(r.after) FROM rules r WHERE r.after > 0)
),
-- By the key and through the inbox, as batches do it: rules name columns of the inbox. It is a join
-- and no array of ids: PostgreSQL would search the array for each row that it tries again.
overdue AS (
    SELECT m.message_id AS id, r.high
    FROM picked p, message_inbox m, rules r
    WHERE m.message_id = p.id
      AND r.n = (SELECT min(f.n) FROM rules f WHERE f."column" IS NULL OR to_jsonb(m) ->> f."column" = f.value)
      AND m.status >= r.low AND m.status < r.high
      AND m.updated_at < now() - NULLIF(r.after, 0) * interval '1 millisecond'
    FOR NO KEY UPDATE OF m SKIP LOCKED
)
-- An id may stand in several partitions, and decide changes all of its rows with a smaller status: each of them has to
-- be overdue and locked.
SELECT o.id AS message_id, max(o.high) AS status, (extract(epoch FROM now()) * 1000000)::int8 AS at
FROM overdue o
GROUP BY o.id
HAVING count(*) = (SELECT count(*) FROM message_inbox m WHERE m.message_id = o.id AND m.status < max(o.high))
ORDER BY o.id COLLATE "C";
