-- The column of the message's id, with the expression by which statements compare it.
id AS (
    SELECT c.*,
           CASE WHEN c.texty AND c.exact THEN format('%I', c.theirs)
                WHEN c.texty THEN format('%I COLLATE "C"', c.theirs)
                ELSE format('(%I::text)', c.theirs) END AS key
    FROM col c WHERE c.n = 1 AND c.attnum IS NOT NULL
),
-- A unique index of a partitioned table has to have the columns by which it is partitioned, and those by which its
-- partitions are. 0: an expression.
parted AS (
    SELECT array_agg(DISTINCT COALESCE(s.attnum, 0)) AS columns, bool_or(COALESCE(s.attnum, 0) <> id.attnum) AS apart
    FROM t
    CROSS JOIN id
    CROSS JOIN pg_partition_tree(t.oid) l
    JOIN pg_partitioned_table p ON p.partrelid = l.relid
    CROSS JOIN unnest(p.partattrs::int2[]) k
    LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = k
    LEFT JOIN pg_attribute s ON s.attrelid = t.oid AND s.attname = a.attname
    HAVING count(*) > 0
),
-- Indexes of the id alone, or with such columns behind it: on the column itself (own), and on the expression that
-- statements compare (found).
key AS (
    SELECT x.*, k.oid AS constraint_oid, k.conname, x.indkey[0] = id.attnum AS own,
           CASE WHEN id.texty THEN x.indkey[0] = id.attnum AND x.indcollation[0] = id.coll
                ELSE x.indkey[0] = 0
                     AND pg_get_expr(x.indexprs, x.indrelid) = format('(%I)::text', id.theirs) END AS found
    FROM id
    JOIN pg_index x ON x.indrelid = id.base
    JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_am m ON m.oid = i.relam AND m.amname IN ('btree', 'hash')
    LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u')
    LEFT JOIN parted p ON p.apart WHERE x.indisvalid AND x.indpred IS NULL
      AND (x.indnkeyatts = 1
           OR (SELECT bool_and(a = ANY (p.columns)) FROM unnest((x.indkey::int2[])[1:x.indnkeyatts - 1]) a))
),
keys AS (
    SELECT bool_or(k.found) IS TRUE AS found,
           bool_or(k.indisunique AND k.indimmediate AND (k.found OR k.own)) IS TRUE AS is_unique,
           min(format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', (SELECT name FROM t), k.conname,
                      regexp_replace(pg_get_constraintdef(k.constraint_oid), ' DEFERRABLE.*', '')))
               FILTER (WHERE k.own AND NOT k.indimmediate) AS undeferred
    FROM key k
),
