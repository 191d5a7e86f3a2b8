-- As recent_sample.sql, of a table without created_at: only the form of the ids can say that they are in the order of
-- time. Variables: inbox_schema, inbox_table, message_id, percent.
WITH s AS MATERIALIZED (
    SELECT :"message_id"::text AS id FROM :"inbox_schema".:"inbox_table" TABLESAMPLE SYSTEM (:'percent'::real)
)
SELECT (count(*) * 100 / :'percent'::float8)::int8 AS rows,
       NULL::text AS boundary, 0::int8 AS recent, 0::float8 AS in_order,
       CASE WHEN avg((s.id ~ '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7')::int) > 0.99 THEN 'UUIDv7'
            WHEN avg((s.id ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$')::int) > 0.99 THEN 'ULID' END AS kind
FROM s
