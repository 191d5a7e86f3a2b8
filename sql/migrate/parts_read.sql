-- The functions and views that the schema has: name of the file, hash of its text.
SELECT name, hash FROM schema_part ORDER BY name;
