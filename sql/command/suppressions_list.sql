-- Suppressed persons, in the order in which they were added: $1 text organisation, $2 text person (NULL: any), $3 bool
-- only what is not removed, $4 int8 most (NULL: all). Column suppressed: the person is at present.
WITH page AS (
    SELECT s.*
    FROM suppression s
    WHERE ($1::text IS NULL OR s.org_id = $1::text) AND ($2::text IS NULL OR s.person = $2::text)
      AND (NOT $3::bool OR s.removed_at IS NULL)
    ORDER BY s.id
    LIMIT $4::int8
)
SELECT p.org_id, p.person, p.class, to_char(p.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS since,
       EXISTS (SELECT FROM suppression_state s WHERE s.key = p.key AND s.suppresses)::text AS suppressed,
       p.made_by, p.message_id, p.soft_count, p.soft_within::text AS soft_within, encode(p.key, 'hex') AS key,
       to_char(p.removed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS removed_at, p.removed_by,
       p.removed_because
FROM page p
ORDER BY p.id;
