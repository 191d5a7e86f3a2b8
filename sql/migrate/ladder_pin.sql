-- Pins a compatible ladder for topics that were consumed with another one. Variables: ladder_hash. The raised
-- generation fences off daemons that still have the old ladder. After progress_lock.sql, since fences lock rows in an
-- order of theirs.
UPDATE consumer_progress p SET generation = t.generation + 1
FROM consumer_topic t
WHERE t.topic = p.topic AND t.ladder_hash <> :'ladder_hash';
UPDATE consumer_topic SET generation = generation + 1, ladder_hash = :'ladder_hash' WHERE ladder_hash <> :'ladder_hash';
