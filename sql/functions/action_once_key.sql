-- A key of once_per, short enough for an index: the only place that makes one. It counts over a pipeline, or over all
-- pipelines and claims of a push: no pipeline has the name null. fields: the values as an array; NULL: there are none.
CREATE OR REPLACE FUNCTION action_once_key(pipeline text, push text, fields jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(k.key) <= 1000 THEN k.key ELSE encode(sha256(convert_to(k.key, 'UTF8')), 'hex') END
    FROM (SELECT ((CASE WHEN push IS NULL THEN jsonb_build_array(pipeline) ELSE jsonb_build_array(NULL, push) END)
                  || COALESCE(fields, '[]'))::text AS key) k
$$;
