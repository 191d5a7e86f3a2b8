-- Whether a partition has a message that is within its retention. Variables: part_schema, part. $1 text[] campaigns, $2
-- int8[] theirs in ms, $3 text[] organisations, $4 int8[] theirs, $5 int8 of all others; 0: without limit.
SELECT EXISTS (
    SELECT FROM ONLY :"part_schema".:"part" t
    LEFT JOIN unnest($1::text[], $2::int8[]) AS c (name, keep) ON c.name = t.campaign_id
    LEFT JOIN unnest($3::text[], $4::int8[]) AS o (name, keep) ON o.name = t.org_id
    WHERE (t.created_at < now() - NULLIF(COALESCE(c.keep, o.keep, $5::int8), 0) * interval '1 millisecond') IS NOT TRUE
) AS young;
