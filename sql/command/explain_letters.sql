-- Dead letters whose payload holds the id as a JSON string: $1 text id as it stands in JSON, with its quotes. Newest
-- first. Reads the whole table: for a person, not for a program.
SELECT d.topic, d.partition, d."offset", d.index, d.reason, d.detail,
       to_char(d.dead_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS dead_at
FROM dead_letter d
WHERE position(convert_to($1::text, 'UTF8') IN d.payload) > 0
ORDER BY d.dead_at DESC, d.topic, d.partition, d."offset", d.index
LIMIT 100;
