-- Says whether an id can stand in two rows of the inbox: it is partitioned, and no unique index has the id alone.
-- Parameters: $1 text schema and $2 text name of its table, $3 text its column of the message's id. One row, or none
-- where there is no such table. For a table without partitions, migrate asks for that index.
SELECT c.relkind = 'p'
           AND NOT EXISTS (SELECT FROM pg_index x
                           WHERE x.indrelid = c.oid AND x.indisunique AND x.indisvalid AND x.indpred IS NULL
                             AND x.indnkeyatts = 1 AND x.indkey[0] = a.attnum) AS can_be_two
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $3::name AND NOT a.attisdropped
WHERE n.nspname = $1::name AND c.relname = $2::name;
