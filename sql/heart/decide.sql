-- The only statement of a batch that reads or writes the inbox: it changes what the receipts change, and says what
-- became of every known message. It counts nothing; src/core/count.c does. Messages, sorted by id, one entry each: $1
-- text[] ids, $2 int2[] highest status, $3 int4[] flags, $4 timestamptz[] event time of that status, $5 text[]
-- organisations that the receipts name (empty: none does). Only the ids are in unnest(): an array of another type costs
-- nothing by subscript. A row for each known message: n (1-based), status and flags before, campaign, fate: c changed,
-- s same, t stale (another transaction was waited for, or the message is deleted), o of another organisation. Unknown
-- messages have no row.
WITH changed AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, ($2::int2[])[e.n]), flags = m.flags | ($3::int4[])[e.n],
        status_at = CASE WHEN ($2::int2[])[e.n] > m.status THEN ($4::timestamptz[])[e.n] ELSE m.status_at END, updated_at = now()
    FROM unnest($1::text[]) WITH ORDINALITY AS e (id, n)
    WHERE m.message_id = e.id AND (($5::text[])[e.n] IS NULL OR NULLIF(m.org_id, '') = ($5::text[])[e.n])
      AND (($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0)
    RETURNING e.n::int4 AS n, m.prev_status AS status, m.prev_flags AS flags, m.campaign_id AS campaign
)
SELECT c.n, c.status, c.flags, c.campaign, 'c' AS fate FROM changed c
UNION ALL
SELECT e.n::int4, m.status, m.flags, m.campaign_id,
       CASE WHEN NULLIF(m.org_id, '') <> ($5::text[])[e.n] THEN 'o'
            WHEN ($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 THEN 't' ELSE 's' END
FROM unnest($1::text[]) WITH ORDINALITY AS e (id, n) JOIN message_inbox m ON m.message_id = e.id
WHERE (SELECT count(*) FROM changed) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM changed c);
