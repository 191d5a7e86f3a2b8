DELETE FROM pipeline_pause WHERE name = $1::text;
