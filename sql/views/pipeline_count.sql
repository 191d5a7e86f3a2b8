CREATE OR REPLACE VIEW pipeline_count AS
SELECT name, sum(started)::bigint AS started, sum(repeated)::bigint AS repeated, sum(refused)::bigint AS refused,
       sum(dropped)::bigint AS dropped, sum(deferred)::bigint AS deferred, sum(capped)::bigint AS capped
FROM (SELECT * FROM pipeline_total UNION ALL SELECT * FROM pipeline_delta) c
GROUP BY name;
