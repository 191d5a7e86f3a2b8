-- Appends the persons whom a batch's transitions suppress (`suppression`). Arrays with an element each: $1 text[]
-- message ids, $2 text[] organisations, $3 text[] persons, $4 text[] classes, $5 timestamptz[] event times, $6 int2[]
-- how many suppress together (0: one alone), $7 int8[] within how many milliseconds. A message that was deleted and
-- came back counts once: decide has locked it, so its earlier rows are visible.
INSERT INTO suppression (key, org_id, person, class, soft_count, soft_within, since, message_id)
SELECT DISTINCT ON (k.key, w.class, w.id) k.key, w.org, w.person, w.class, NULLIF(w.soft_count, 0),
       CASE WHEN w.soft_count > 0 THEN w.within_ms * interval '1 millisecond' END, w.since, w.id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::int2[], $7::int8[])
     AS w (id, org, person, class, since, soft_count, within_ms)
CROSS JOIN LATERAL (SELECT suppression_key(w.org, w.person) AS key) k
WHERE NOT EXISTS (SELECT FROM suppression s WHERE s.key = k.key AND s.class = w.class AND s.message_id = w.id)
ORDER BY k.key, w.class, w.id, w.soft_count;
