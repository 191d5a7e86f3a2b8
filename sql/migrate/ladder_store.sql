-- Which ladder the tables hold. Variables: ladder_hash. After ladder_fill.sql, in the same transaction.
DELETE FROM status_ladder;
INSERT INTO status_ladder (hash) VALUES (:'ladder_hash');
