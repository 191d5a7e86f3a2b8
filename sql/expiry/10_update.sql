-- One step of `receiptd expire`: messages in a range of pages for which nothing came in time get the status of their
-- rule, as by a receipt of it: it wins over a smaller code only, and a later receipt of a larger code wins over it.
-- The files of this folder, in order, are the statement; which of them, the configuration says
-- (src/commands/expire.c). Variables: part_schema, part_table, and the names there of
-- message_id, status, updated_at. $1 tid first, $2 tid end (excluded), $3 jsonb rules, the first that fits a message
-- counts: n, column and value (null: all messages), low and high (statuses from low up to, but without, high become
-- high), after (ms; 0: never). $4 bool: note what changed in the timeline.
WITH
rules AS (
    SELECT r.* FROM jsonb_to_recordset($3::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
),
-- A row that a batch holds is left to the next run: a step waits for no batch and cannot be part of a deadlock. What is
-- taken is locked, so a receipt that comes now waits, and then meets the new status.
picked AS (
    SELECT t.:"message_id"::text AS id
    FROM ONLY :"part_schema".:"part_table" t
    WHERE t.ctid >= $1::tid AND t.ctid < $2::tid
      AND t.:"status" >= (SELECT min(r.low) FROM rules r WHERE r.after > 0) AND t.:"status" < (SELECT max(r.high) FROM rules r WHERE r.after > 0)
      AND t.:"updated_at" < now() - (SELECT min(r.after) FROM rules r WHERE r.after > 0) * interval '1 millisecond'
    FOR UPDATE OF t SKIP LOCKED
),
-- By the key and through the inbox, as batches do it.
u AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags, status = r.high, status_at = now(), updated_at = now()
    FROM rules r
    WHERE m.message_id = ANY (ARRAY(SELECT p.id FROM picked p))
      AND r.n = (SELECT min(f.n) FROM rules f WHERE f."column" IS NULL OR to_jsonb(m) ->> f."column" = f.value)
      AND m.status >= r.low AND m.status < r.high AND m.updated_at < now() - NULLIF(r.after, 0) * interval '1 millisecond'
    RETURNING COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new, 0 AS gained, m.message_id AS id,
              COALESCE(m.org_id, '') AS org, NULL::text AS link, now() AS at
),
