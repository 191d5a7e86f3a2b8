-- After external_hold.sql, before book.sql: notes that the partition is booked. Variables: part_schema, part. A row
-- (booked), unless it has returned meanwhile, or somebody else has booked it.
UPDATE inbox_partition p SET booked_at = now()
FROM inbox_partition_state s
WHERE s.part = p.part AND s.state = 'detached' AND p.booked_at IS NULL AND s.part_schema = :'part_schema' AND s.part_name = :'part'
RETURNING true AS booked;
