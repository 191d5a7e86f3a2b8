-- Before a file of sql/functions or sql/views is run: notes its hash. Variables: part, hash. Bodies may name functions
-- that come later.
SET LOCAL check_function_bodies = off;
INSERT INTO schema_part (name, hash) VALUES (:'part', :'hash')
ON CONFLICT (name) DO UPDATE SET hash = EXCLUDED.hash, applied_at = now();
