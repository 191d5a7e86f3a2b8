-- One step of `receiptd retire`: deletes the aliases in a range of pages that are older than $3 int8 ms and lead to
-- nothing. Returns rows (deleted). An alias stays if it leads to a message, to a further alias, or to a remembered
-- message: late receipts of that one may come under the gateway's id. Parameters: $1 tid first, $2 tid end
-- (excluded). The scalar subqueries are look-ups by key for each row.
WITH gone AS (
    DELETE FROM message_alias a
    WHERE a.ctid = ANY (ARRAY(
        SELECT t.ctid
        FROM message_alias t
        CROSS JOIN LATERAL (SELECT t.message_id COLLATE "default" AS id) k -- gives way to that of the inbox's key
        WHERE t.ctid >= $1::tid AND t.ctid < $2::tid AND t.created_at < now() - $3::int8 * interval '1 millisecond'
          AND (SELECT true FROM message_inbox m WHERE m.message_id = k.id LIMIT 1) IS NULL
          AND (SELECT true FROM inbox_detached d WHERE d.message_id = t.message_id) IS NULL
          AND (SELECT true FROM retired_message r WHERE r.hash = hashtextextended(t.message_id, 0) LIMIT 1) IS NULL
          AND (SELECT true
               FROM message_alias n
               WHERE n.channel_account = t.channel_account AND n.gateway_id = t.message_id) IS NULL
        FOR UPDATE OF t SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
