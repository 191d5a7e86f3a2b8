-- In place of 10_update.sql while the inbox has a recent set: an index over the rows with created_at >= recent_since
-- alone, which is small however large the table grows. The same parameters. Stage one finds the messages of the recent
-- set. Only those that it neither changed nor knows go to stage two, 16_older.sql. Both stages see one snapshot, so a
-- receipt is counted or parked, never both and never neither. All transactions lock the messages of stage one by id,
-- then those of stage two by id. The boundary is a literal, or a generic plan could not use the index. Without the
-- index, stage one is as correct, by the key. Where the table is partitioned by created_at, or by ranges of the id
-- (recent_column), there is none: the literal leaves the newest partitions in the plan of stage one, and the others in
-- that of stage two. ALL of an array with the literal is what >= is, and no index can be read from there on: with >= a
-- plan that was made while the newest partitions were small would read all of each.
WITH
recent AS (
    UPDATE message_inbox m
