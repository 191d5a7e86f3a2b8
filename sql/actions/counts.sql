-- For metrics: see actions_counts().
SELECT * FROM actions_counts();
