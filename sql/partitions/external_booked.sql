-- Notes that the partition is booked, after external_hold.sql and before book.sql. Variables: part_schema, part. A
-- row (booked), unless it has returned meanwhile, or another session has booked it.
UPDATE inbox_partition p SET booked_at = now()
FROM inbox_partition_state s
WHERE s.part = p.part
  AND s.state = 'detached'
  AND p.booked_at IS NULL
  AND s.part_schema = :'part_schema'
  AND s.part_name = :'part'
RETURNING true AS booked;
