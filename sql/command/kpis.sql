-- The rates: $1 text campaign (NULL: all), $2 text organisation as in funnel.sql. Columns: campaign_id, kpi, value (NULL: denominator
-- 0), numerator, denominator.
SELECT k.campaign_id, k.kpi, k.value, k.numerator, k.denominator
FROM campaign_kpi k
WHERE ($1::text IS NULL OR k.campaign_id = $1::text) AND ($2::text IS NULL OR k.org_id = $2::text)
ORDER BY k.campaign_id, k.kpi;
