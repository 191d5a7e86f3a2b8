-- For metrics: see actions_counts() in sql/migrate/009_intents.sql.
SELECT * FROM actions_counts();
