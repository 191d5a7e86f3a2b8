-- The state of each noted partition of an inbox whose partitions receiptd does not make: its row in inbox_partition,
-- and state, by the catalogs. Values of state: attached: in the inbox. leaving: its DETACH CONCURRENTLY is not
-- through. detached: it has left, and is not booked. handed over: the same, as a child of inbox_detached, which
-- audits read anyway. booked: it has left and is booked. dropped: it is gone and was not booked. returned: it was
-- booked, and is in the inbox again.
CREATE OR REPLACE VIEW inbox_partition_state AS
WITH RECURSIVE tree (oid, leaves) AS (
    SELECT DISTINCT p.inbox::oid, false FROM inbox_partition p
    UNION ALL
    SELECT i.inhrelid, t.leaves OR i.inhdetachpending FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT p.part, p.inbox, p.name, n.nspname AS part_schema, c.relname AS part_name,
       c.relowner AS owner, p.message_id, p.campaign_id, p.status, p.flags, p.booked_at,
       CASE WHEN t.leaves THEN 'leaving'
            WHEN t.oid IS NOT NULL THEN CASE WHEN p.booked_at IS NULL THEN 'attached' ELSE 'returned' END
            WHEN p.booked_at IS NOT NULL THEN 'booked'
            WHEN c.oid IS NULL THEN 'dropped'
            WHEN EXISTS (SELECT FROM pg_inherits i
                         WHERE i.inhrelid = c.oid AND i.inhparent = 'inbox_detached'::regclass)
            THEN 'handed over'
            ELSE 'detached' END AS state
FROM inbox_partition p
LEFT JOIN tree t ON t.oid = p.part::oid
LEFT JOIN pg_class c ON c.oid = p.part::oid
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace;
