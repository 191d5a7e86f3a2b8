-- The shards of this instance: $1 text instance, $2 int8 lease in ms. Returns them.
SELECT * FROM actions_own($1::text, $2::int8);
