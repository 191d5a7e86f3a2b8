-- A sample of the inbox's pages. Variables: inbox_schema, inbox_table, message_id, created_at; percent of the pages;
-- most, the messages that a recent set has when it is made; since, of the present set (NULL: none). Columns: rows:
-- messages, estimated; boundary: since when there are at most `most` (NULL: too many came at one time); recent:
-- messages of the present set, estimated. Column in_order: how far the order of the ids is the order of time (1:
-- wholly). Column kind: a known form of the ids.
WITH s AS MATERIALIZED (
    SELECT :"message_id"::text AS id, :"created_at" AS at
    FROM :"inbox_schema".:"inbox_table" TABLESAMPLE SYSTEM (:'percent'::real)
),
by_time AS (SELECT s.at, sum(count(*)) OVER (ORDER BY s.at DESC) AS newer FROM s WHERE s.at IS NOT NULL GROUP BY s.at),
form AS (
    SELECT avg((s.id ~ '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7')::int) AS v7,
           avg((s.id ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$')::int) AS ulid,
           avg((s.id ~ '^[0-9A-Za-z]{27}$')::int) AS ksuid, avg((s.id ~ '^[0-9]{17,19}$')::int) AS snowflake
    FROM s
)
SELECT (count(*) * 100 / :'percent'::float8)::int8 AS rows,
       (SELECT min(b.at) FROM by_time b WHERE b.newer <= :'most'::float8 * :'percent'::float8 / 100) AS boundary,
       (count(*) FILTER (WHERE s.at >= :'since'::timestamptz) * 100 / :'percent'::float8)::int8 AS recent,
       COALESCE((SELECT corr(r.place, r.turn)
                 FROM (SELECT rank() OVER (ORDER BY s.id COLLATE "C") AS place, rank() OVER (ORDER BY s.at) AS turn
                       FROM s WHERE s.at IS NOT NULL) r), 0) AS in_order,
       (SELECT CASE WHEN v7 > 0.99 THEN 'UUIDv7' WHEN ulid > 0.99 THEN 'ULID' WHEN ksuid > 0.99 THEN 'KSUID'
                    WHEN snowflake > 0.99 THEN 'snowflake' END FROM form) AS kind
FROM s
