-- Statuses and flags of a table that is to become the inbox that the ladder does not have. One pass over the table.
-- check-config runs it, where migrate asks ladder_check.sql after it has made the view. Columns: as there. Variables:
-- inbox_schema, inbox_table, status and flags (its columns); $1 int2[] codes of the ladder. A column that is not
-- there yet is the one of "fresh": a name that the row does not have is looked for further out.
WITH used AS MATERIALIZED (
    SELECT (SELECT :"status" FROM (SELECT t.*) own) AS status,
           (SELECT :"flags" FROM (SELECT t.*) own) AS flags, count(*) AS n
    FROM :"inbox_schema".:"inbox_table" t CROSS JOIN (SELECT 0::int2 AS :"status", 0::int4 AS :"flags") fresh
    GROUP BY 1, 2
),
uses AS (
    SELECT u.status AS code, sum(u.n) AS n FROM used u WHERE u.status <> 0 GROUP BY 1
    UNION ALL
    SELECT 9001 + bit, sum(u.n) FROM used u, generate_series(0, 30) bit WHERE (u.flags >> bit) & 1 = 1 GROUP BY bit
)
SELECT s.code, s.code::text AS name, s.n::bigint AS rows, 'is in use, but not in the new ladder' AS problem
FROM uses s
WHERE s.code <> ALL ($1::int2[])
ORDER BY 1;
