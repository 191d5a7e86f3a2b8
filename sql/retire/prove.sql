-- `receiptd maintain` has recounted campaigns: $1 text[] which, $2 text[] those with a cell that is off, once a cell.
-- It took $3 int8 milliseconds, a hundred times of which are spent now. Campaigns that were not met for 30 days are
-- forgotten.
WITH spent AS (
    INSERT INTO maintained AS m (task, ended_at)
    VALUES ('proof', now() - interval '1 hour' + $3::int8 * interval '100 milliseconds')
    ON CONFLICT (task) DO UPDATE
    SET ended_at = GREATEST(m.ended_at, now() - interval '1 day') + $3::int8 * interval '100 milliseconds'
),
gone AS (
    DELETE FROM campaign_proof p WHERE p.proven_at < now() - interval '30 days' AND p.campaign_id <> ALL ($1::text[])
)
INSERT INTO campaign_proof (campaign_id, drift)
SELECT c.campaign_id, COALESCE(d.cells, 0)
FROM unnest($1::text[]) AS c (campaign_id)
LEFT JOIN (SELECT u.campaign_id, count(*)::int4 AS cells FROM unnest($2::text[]) AS u (campaign_id) GROUP BY 1) d
    ON d.campaign_id = c.campaign_id
ORDER BY c.campaign_id
ON CONFLICT (campaign_id) DO UPDATE SET proven_at = EXCLUDED.proven_at, drift = EXCLUDED.drift;
