-- The only statement of a batch that reads or writes the inbox: it changes messages as the receipts say, and tells
-- the fate of every message. It counts nothing; src/core/count.c does.
--
-- Messages, sorted by id, one entry each: $1 text[] ids, $2 int2[] highest status, $3 int4[] flags, $4 timestamptz[]
-- event time of that status, $5 text[] organisations. An organisation is NULL if the message's receipts name none,
-- and empty if they differ or one says that a part of the message is delivered. An empty array: no message has one.
-- Ids and organisations are in unnest(): an element of an array of texts is found by walking through those before it.
-- An element of an array of numbers costs nothing.
--
-- The statement writes the old values itself, and RETURNING brings them back. Taken from a join, they would be those
-- of the snapshot, and wrong exactly when another writer was waited for. The target is found by its key, never by
-- ctid: after such a wait the row is elsewhere. The generic plan is a nested loop in the order of the array, which is
-- the order in which all transactions lock messages. A receipt that names an organisation changes a message of that
-- organisation alone.
--
-- Returns a row for each message, and for each of its rows where an id stands in several partitions. Columns: fate, n
-- (1-based), status and flags before, campaign, owner (of a refused one), then the columns that rules want. Fates: c
-- changed, s same, t stale, o of another organisation than the receipts name, h held (for the wake to decide), a
-- absent, d deleted, e erased. Stale: another transaction was waited for, and the message is decided again.
--
-- src/postgres/lane_statements.c writes the variables. changed and same: the columns that rules want of a row.
-- updated_at: now, since the UPDATE finds changed rows alone.
--
-- With first times it also finds rows whose times alone become known or earlier. This is no transition: their
-- updated_at stays. Then there are set_times and or_earlier, and three parameters. Parameter $6 timestamptz[]: the
-- least times of each message's receipts that name SENT, DELIVERED, OPENED, CLICKED, four of each message (infinity:
-- none does). Parameters $7 int4[]: place in $8 of the first gateway by name of these receipts (0: they name none),
-- $8 text[] gateways.
WITH changed AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, ($2::int2[])[e.n]), flags = m.flags | ($3::int4[])[e.n],
        status_at = CASE WHEN ($2::int2[])[e.n] > m.status THEN ($4::timestamptz[])[e.n] ELSE m.status_at END,
        updated_at = :updated_at :set_times
    FROM unnest($1::text[], $5::text[]) WITH ORDINALITY AS e (id, org, n)
    WHERE m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND (($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier)
    RETURNING 'c' AS fate, e.n::int4 AS n, m.prev_status AS status, m.prev_flags AS flags,
              m.campaign_id AS campaign, NULL AS owner :changed
)
SELECT * FROM changed
UNION ALL
SELECT CASE WHEN m.message_id IS NULL
            THEN (SELECT CASE message_is_erased(e.id) WHEN true THEN 'e' WHEN false THEN 'd' ELSE 'a' END)
            WHEN e.org = '' THEN 'h'
            WHEN NULLIF(m.org_id, '') = e.org IS NOT TRUE AND e.org IS NOT NULL THEN 'o'
            WHEN ($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier THEN 't' ELSE 's' END,
       e.n::int4, m.status, m.flags, m.campaign_id, CASE WHEN e.org <> '' THEN NULLIF(m.org_id, '') END :same
FROM unnest($1::text[], $5::text[]) WITH ORDINALITY AS e (id, org, n) LEFT JOIN message_inbox m ON m.message_id = e.id
WHERE (SELECT count(*) FROM changed) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM changed c);
