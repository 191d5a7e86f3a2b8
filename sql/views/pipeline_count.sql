CREATE OR REPLACE VIEW pipeline_count AS
SELECT name, sum(started)::bigint AS started, sum(repeated)::bigint AS repeated
FROM (SELECT * FROM pipeline_total UNION ALL SELECT * FROM pipeline_delta) c
GROUP BY name;
