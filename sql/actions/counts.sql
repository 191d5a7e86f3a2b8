-- For metrics: see actions_counts() in sql/migrate/005_actions.sql.
SELECT * FROM actions_counts();
