-- GET /suppressions, in the order in which they were added: $1 text organisation of the token (NULL: all), $2 text org
-- (NULL: any), $3 text person (NULL: any), $4 int8 the last one shown (NULL: none), $5 int4 most.
WITH page AS (
    SELECT s.id, s.key, s.org_id, s.person, s.class, s.since, s.message_id, s.made_by, s.removed_at, s.removed_by,
           s.removed_because
    FROM suppression s
    WHERE ($1::text IS NULL OR s.org_id = $1::text) AND ($2::text IS NULL OR s.org_id = $2::text)
      AND ($3::text IS NULL OR s.person = $3::text) AND s.id > COALESCE($4::int8, 0)
    ORDER BY s.id
    LIMIT $5::int4
)
SELECT json_build_object('suppressions', COALESCE(json_agg(json_build_object(
    'org_id', p.org_id, 'person', p.person, 'class', p.class,
    'since', to_char(p.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'suppressed', EXISTS (SELECT FROM suppression_state s WHERE s.key = p.key AND s.suppresses),
    'message_id', p.message_id, 'made_by', p.made_by,
    'removed_at', to_char(p.removed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'removed_by', p.removed_by, 'removed_because', p.removed_because) ORDER BY p.id), '[]'),
    'next', CASE WHEN count(*) = $5::int4 THEN max(p.id)::text END)::text AS body
FROM page p;
