-- Topics whose ladder has only grown are pinned to the new one, and no daemon is fenced off: those with the old one
-- stay right. Variables: ladder_hash. Before ladder_store.sql, for it reads the old hash; in the same transaction.
UPDATE consumer_topic SET ladder_hash = :'ladder_hash' WHERE ladder_hash IN (SELECT l.hash FROM status_ladder l);
