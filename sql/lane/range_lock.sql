-- Serialises the resolving of ranges in one lane: $1 int4 lane. A person has one lane, whatever the partition. Ranges
-- of one person may be due in partitions of two instances at once, and each instance would park a receipt for a
-- message. So an instance that resolves ranges of a lane waits here for the other's commit, and then sees what that
-- has parked. It stands before range_resolve.sql as a statement of its own: range_resolve.sql must take its snapshot
-- after the wait.
SELECT FROM turn WHERE task = 'ranges' AND lane = $1::int4 FOR UPDATE;
