-- Moves messages of a range from the default partition, which is off, into a table that is no partition yet. Variables:
-- other, part, lower, upper.
WITH gone AS (
    DELETE FROM :"other" WHERE message_id >= :'lower' COLLATE "C" AND message_id < :'upper' COLLATE "C" RETURNING *
)
INSERT INTO :"part" SELECT * FROM gone;
