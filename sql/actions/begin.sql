-- Runs that transactions of lanes have begun: see actions_begin() in sql/migrate/009_intents.sql. $1 int4 most rows of run_intent,
-- $2 text the large organisation that was last. Returns taken (rows), runs, oldest_ms (the age of the oldest of them) and last.
SELECT * FROM actions_begin($1::int4, $2::text);
