-- Adds persons: $1 jsonb rows and $2 text by whom, as suppressions_import() takes them. Returns rows, how many.
SELECT suppressions_import($1::text::jsonb, $2::text) AS rows;
