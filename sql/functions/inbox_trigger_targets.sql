-- The tables that get a statement trigger of the inbox: name (quoted) and argument of its function. The table itself
-- gets one, and so does each of its partitions, for statements that name the partition. Foreign tables and partitions
-- of another owner than the table's get none.
CREATE OR REPLACE FUNCTION inbox_trigger_targets(base oid)
RETURNS TABLE (name text, argument text) LANGUAGE sql STABLE AS $$
    SELECT base::regclass::text, ''
    UNION ALL
    SELECT p.oid::regclass::text, quote_literal('partition')
    FROM pg_class b
    CROSS JOIN LATERAL pg_partition_tree(b.oid) t
    JOIN pg_class p ON p.oid = t.relid AND p.relowner = b.relowner AND p.relkind <> 'f'
    WHERE b.oid = base AND t.level > 0
$$;
