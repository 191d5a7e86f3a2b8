-- Forgets partitions that were dropped before they were booked, after an audit has booked what was missing. $1 text[]
-- their names.
DELETE FROM inbox_partition p USING inbox_partition_state s
WHERE s.part = p.part AND s.state = 'dropped' AND s.name = ANY ($1::text[]);
