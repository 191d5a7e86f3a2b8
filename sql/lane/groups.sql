-- Appends the members of groups that changed: one row of arrays for each kind of group. The keys are made here, since
-- their salt stays in the database.
-- Kinds: $1 text[] names, $2 int4[] first and $3 int4[] last member of each (1-based).
-- Members: $4 text[] campaigns, $5 text[] what the key is made of, $6 int2[] status before, $7 int2[] status now, $8
-- int4[] flags gained.
INSERT INTO group_delta (kind, campaign_id, key, old, new, gained)
SELECT k.kind, ($4::text[])[k.first:k.last], m.keys, ($6::int2[])[k.first:k.last], ($7::int2[])[k.first:k.last],
       ($8::int4[])[k.first:k.last]
FROM unnest($1::text[], $2::int4[], $3::int4[]) AS k (kind, first, last)
CROSS JOIN (SELECT s.salt FROM group_salt s) s
CROSS JOIN LATERAL (
    SELECT array_agg(group_key(s.salt, k.kind, e.campaign, e.value, NULL) ORDER BY e.n) AS keys
    FROM unnest(($4::text[])[k.first:k.last], ($5::text[])[k.first:k.last]) WITH ORDINALITY AS e (campaign, value, n)
) m;
