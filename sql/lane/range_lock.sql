-- Before range_resolve.sql, as a statement of its own. Ranges of one person may be due in partitions of two instances
-- at once, and each would park a receipt for a message. A person has one lane, whatever the partition: so who resolves
-- ranges of a lane waits here for the other's commit, and sees what that has parked. $1 int4 lane.
SELECT FROM turn WHERE task = 'ranges' AND lane = $1::int4 FOR UPDATE;
