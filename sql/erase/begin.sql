-- The record of an erasure: $1 text customer or messages, $2 text reference (NULL: a salted hash of $3 text instead,
-- which is the subject). Returns id.
INSERT INTO erasure (subject, reference, subject_salt, subject_hash)
SELECT $1::text, $2::text, s.salt, sha256(s.salt || convert_to($3::text, 'UTF8'))
FROM (SELECT CASE WHEN $2::text IS NULL AND $3::text IS NOT NULL THEN uuid_send(gen_random_uuid()) END AS salt) s
RETURNING id;
