-- The rates: $1 text campaign (NULL: all). Columns: campaign_id, kpi, value (NULL: denominator 0), numerator, denominator.
SELECT k.campaign_id, k.kpi, k.value, k.numerator, k.denominator
FROM campaign_kpi k
WHERE $1::text IS NULL OR k.campaign_id = $1::text
ORDER BY k.campaign_id, k.kpi;
