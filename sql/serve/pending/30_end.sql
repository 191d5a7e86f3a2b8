    ORDER BY r.n LIMIT 1
) r
CROSS JOIN LATERAL (SELECT m.updated_at + NULLIF(r.after, 0) * interval '1 millisecond' AS at) e
WHERE m.campaign_id = $2::text AND m.status >= r.low AND m.status < r.high AND e.at IS NOT NULL
  AND ($1::text IS NULL OR EXISTS (SELECT FROM campaign_org a WHERE a.campaign_id = $2::text AND a.org_id = $1::text));
