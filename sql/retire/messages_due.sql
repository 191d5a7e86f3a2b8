-- The messages that messages.sql would delete in a part of the inbox, for `receiptd retire --dry-run`: rows,
-- campaigns, oldest. Variables as there; $1 text[] campaigns, $2 int8[] theirs, $3 text[] organisations, $4 int8[]
-- theirs, $5 int8 of all others.
SELECT count(*) AS rows, count(DISTINCT COALESCE(t.:"campaign_id"::text, '')) AS campaigns,
       to_char(min(t.:"created_at") AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS oldest
FROM ONLY :"part_schema".:"part_table" t
LEFT JOIN unnest($1::text[], $2::int8[]) AS c (name, keep) ON c.name = t.:"campaign_id"::text
LEFT JOIN unnest($3::text[], $4::int8[]) AS o (name, keep) ON o.name = t.:"org_id"::text
WHERE t.:"created_at" < now() - NULLIF(COALESCE(c.keep, o.keep, $5::int8), 0) * interval '1 millisecond';
