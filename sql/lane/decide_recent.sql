-- In place of decide.sql while the inbox has a recent set: an index over the rows with created_at >= since
-- alone, which is small however large the table grows. It has the same parameters, variables and answer (seen: the
-- names of same).
--
-- Stage one finds the messages of the recent set. Only those that it neither changed nor knows go to stage two. Both
-- stages see one snapshot, so a receipt is counted or parked, never both and never neither. All transactions lock the
-- messages of stage one by id, then those of stage two by id.
--
-- The boundary is a literal, or a generic plan could not use the index. Without the index, stage one is as correct,
-- by the key. Where the table is partitioned by created_at, or by ranges of the id (column), there is no such
-- index. The literal then leaves the newest partitions in the plan of stage one, and the others in that of stage two.
-- ALL of an array with the literal means the same as >=, but no index can be read from there on. With >= a plan that
-- was made while the newest partitions were small would read all of each.
WITH recent (fate, n, status, flags, campaign, owner) AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, ($2::int2[])[e.n]), flags = m.flags | ($3::int4[])[e.n],
        status_at = CASE WHEN ($2::int2[])[e.n] > m.status THEN ($4::timestamptz[])[e.n] ELSE m.status_at END,
        updated_at = :updated_at :set_times
    FROM unnest($1::text[], $5::text[]) WITH ORDINALITY AS e (id, org, n)
    WHERE m.message_id = e.id AND m.:"column" >= ALL (:'since') AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND (($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier)
    RETURNING 'c', e.n::int4, m.prev_status, m.prev_flags, m.campaign_id, NULL :changed
),
-- Messages that stage one did not change: those of the recent set that were up to date (known), and all others. Stage
-- two is for these others. They are not in the set, or are there under another organisation than the receipt names.
seen (n, id, org, found, status, flags, campaign, owner, known, stale) AS MATERIALIZED (
    SELECT e.n::int4, e.id, e.org, m.message_id IS NOT NULL, m.status, m.flags, m.campaign_id, NULLIF(m.org_id, ''),
           m.message_id IS NOT NULL AND (e.org IS NULL OR COALESCE(NULLIF(m.org_id, '') = e.org, false)),
           ($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier :same
    FROM unnest($1::text[], $5::text[]) WITH ORDINALITY AS e (id, org, n)
    LEFT JOIN message_inbox m ON m.message_id = e.id AND m.:"column" >= ALL (:'since')
    WHERE (SELECT count(*) FROM recent) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM recent c)
),
older AS (
    UPDATE message_inbox m
    SET prev_status = m.status, prev_flags = m.flags,
        status = GREATEST(m.status, ($2::int2[])[e.n]), flags = m.flags | ($3::int4[])[e.n],
        status_at = CASE WHEN ($2::int2[])[e.n] > m.status THEN ($4::timestamptz[])[e.n] ELSE m.status_at END,
        updated_at = :updated_at :set_times
    FROM seen e
    WHERE NOT e.known AND m.message_id = e.id AND (m.:"column" < ALL (:'since') OR m.:"column" IS NULL)
      AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND (($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier)
    RETURNING 'c', e.n, m.prev_status, m.prev_flags, m.campaign_id, NULL :changed
)
SELECT * FROM recent
UNION ALL SELECT * FROM older
UNION ALL SELECT CASE WHEN s.stale THEN 't' ELSE 's' END, s.n, s.status, s.flags, s.campaign, NULL :seen
FROM seen s WHERE s.known
UNION ALL
SELECT CASE WHEN m.message_id IS NULL AND NOT s.found
            THEN (SELECT CASE message_is_erased(s.id) WHEN true THEN 'e' WHEN false THEN 'd' ELSE 'a' END)
            WHEN s.org = '' THEN 'h'
            WHEN e.owner = s.org IS NOT TRUE AND s.org IS NOT NULL THEN 'o'
            WHEN ($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0 :or_earlier THEN 't' ELSE 's' END,
       s.n, m.status, m.flags, m.campaign_id, CASE WHEN s.org <> '' THEN e.owner END :same
FROM seen s
LEFT JOIN message_inbox m ON m.message_id = s.id AND (m.:"column" < ALL (:'since') OR m.:"column" IS NULL)
CROSS JOIN LATERAL (SELECT s.n, CASE WHEN m.message_id IS NULL THEN s.owner ELSE NULLIF(m.org_id, '') END AS owner) e
WHERE NOT s.known AND s.n NOT IN (SELECT c.n FROM older c) AND s.n NOT IN (SELECT k.n FROM seen k WHERE k.known);
