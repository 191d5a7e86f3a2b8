-- Makes runs of what transactions of lanes have begun: see actions_begin(). $1 int4 rows of run_intent at most, $2 text
-- the large organisation that was last. Returns taken (rows), runs, oldest_ms (the age of the oldest of them) and last.
SELECT * FROM actions_begin($1::int4, $2::text);
