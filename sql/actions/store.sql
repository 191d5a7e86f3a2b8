-- The pipelines of the configuration: $1 text, JSON.
SELECT pipelines_store($1::text::jsonb);
