-- Notes the partitions of an inbox whose partitions receiptd does not make, under their present names. Forgets those
-- that are booked and dropped, and those of another inbox. Parameters: $1 text schema and $2 text name of the inbox;
-- $3 to $6 text its columns message_id, campaign_id, status, flags.
WITH leaf AS MATERIALIZED (
    SELECT c.oid, b.oid AS inbox, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class b JOIN pg_namespace s ON s.oid = b.relnamespace
    CROSS JOIN LATERAL pg_partition_tree(b.oid) t
    JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE s.nspname = $1::name AND b.relname = $2::name AND t.isleaf AND t.level > 0 AND c.relkind = 'r'
),
forgotten AS (
    DELETE FROM inbox_partition p
    WHERE p.part NOT IN (SELECT l.oid FROM leaf l)
      AND (p.inbox IS DISTINCT FROM to_regclass(format('%I.%I', $1::text, $2::text))
           OR (p.booked_at IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = p.part)))
)
INSERT INTO inbox_partition AS p (part, inbox, name, message_id, campaign_id, status, flags)
SELECT l.oid, l.inbox, l.name, $3, $4, $5, $6 FROM leaf l
ON CONFLICT (part) DO UPDATE SET inbox = excluded.inbox, name = excluded.name,
                                 message_id = excluded.message_id, campaign_id = excluded.campaign_id,
    status = excluded.status, flags = excluded.flags
WHERE (p.inbox, p.name, p.message_id, p.campaign_id, p.status, p.flags) IS DISTINCT FROM
      (excluded.inbox, excluded.name, excluded.message_id, excluded.campaign_id, excluded.status, excluded.flags);
