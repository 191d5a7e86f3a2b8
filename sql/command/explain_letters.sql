-- Dead letters whose payload holds the id: $1 text id as it stands in JSON, with its quotes. The payload of a topic in
-- another form may have it inside of a JSON text, or as the value of a form. Newest first. Reads the whole table: for a
-- person, not for a program.
SELECT d.topic, d.partition, d."offset", d.index, d.reason, d.detail,
       to_char(d.dead_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS dead_at
FROM dead_letter d
WHERE position(convert_to($1::text, 'UTF8') IN d.payload) > 0
   OR position(convert_to(replace($1::text, '"', '\"'), 'UTF8') IN d.payload) > 0
   OR position(convert_to('=' || btrim($1::text, '"') || '&', 'UTF8') IN d.payload || '&'::bytea) > 0
ORDER BY d.dead_at DESC, d.topic, d.partition, d."offset", d.index
LIMIT 100;
