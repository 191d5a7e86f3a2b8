-- The next messages of a customer. Returns id. Variables: inbox_schema, inbox_table and the names there of message_id
-- and customer_id. Parameters: $1 the customer's id, of the column's own type, so that an index on it is used; $2
-- text the last id of the page before ('' at first), $3 int4 most rows.
SELECT t.:"message_id"::text COLLATE "C" AS id
FROM :"inbox_schema".:"inbox_table" t
WHERE t.:"customer_id" = $1 AND t.:"message_id"::text COLLATE "C" > $2::text
ORDER BY 1 LIMIT $3::int4;
