-- One step of `receiptd retire`: deletes the noted parts of messages that are gone without being booked. Returns rows
-- (deleted). This happens with inbox.targeted: none, and to a partition that was dropped or truncated by itself.
-- Parameters: $1 tid first, $2 tid end (excluded). The scalar subqueries are look-ups by key for each row.
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
