-- Partitions that need attention, of an inbox whose partitions receiptd does not make: name, state
-- (views/inbox_partition_state).
SELECT s.name, s.state
FROM inbox_partition_state s
WHERE s.state IN ('detached', 'dropped', 'returned')
ORDER BY s.name;
