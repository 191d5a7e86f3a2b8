-- Topics whose ladder has only grown are pinned to the new one, and nobody is fenced off: daemons with the old one stay right.
-- Variables: ladder_hash. Before ladder_store.sql, for it looks at the old hash; in the same transaction.
UPDATE consumer_topic SET ladder_hash = :'ladder_hash' WHERE ladder_hash IN (SELECT l.hash FROM status_ladder l);
