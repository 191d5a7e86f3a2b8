-- GET /pipelines: $1 text organisation; pipelines belong to none, so only a token for all (NULL) sees them.
SELECT json_build_object('pipelines', COALESCE(json_agg(json_build_object(
    'name', p.name, 'active', p.active, 'paused', p.paused,
    'wordings', p.wordings, 'started', p.started, 'repeated', p.repeated)
    ORDER BY p.name), '[]'))::text AS body
FROM (
    SELECT p.name, bool_or(p.active) AS active, bool_or(k.name IS NOT NULL) AS paused, count(*) AS wordings,
           COALESCE(max(c.started), 0) AS started, COALESCE(max(c.repeated), 0) AS repeated
    FROM pipeline p
    LEFT JOIN pipeline_pause k ON k.name = p.name
    LEFT JOIN pipeline_count c ON c.name = p.name
    WHERE $1::text IS NULL
    GROUP BY p.name
) p;
