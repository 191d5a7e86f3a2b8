-- One step of `receiptd retire`: deletes what is known of the parts of messages that are gone without being booked
-- (inbox.targeted: none, a partition that was dropped or truncated by itself). $1 tid first, $2 tid end (excluded).
-- Returns rows (deleted). The scalar subqueries are lookups by key for each row.
WITH gone AS (
    DELETE FROM message_part p
    WHERE p.ctid = ANY (ARRAY(
        SELECT t.ctid
        FROM message_part t
        WHERE t.ctid >= $1::tid AND t.ctid < $2::tid
          AND (SELECT true FROM message_inbox m WHERE m.message_id = t.message_id LIMIT 1) IS NULL
          AND (SELECT true FROM inbox_detached d WHERE d.message_id = t.message_id LIMIT 1) IS NULL
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
