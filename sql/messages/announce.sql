-- Messages that are announced on topics: see messages_announce(). $1 text[] topics, $2 int4[] partitions, $3 int8[]
-- expected, $4 int8[] next. Then the records: $5 text[] topics, $6 int4[] partitions, $7 int8[] offsets, $8 text[]
-- keys of tombstones, $9 text[] values. $10 text[] columns that receiptd fills.
SELECT *
FROM messages_announce($1::text[], $2::int4[], $3::int8[], $4::int8[], $5::text[], $6::int4[], $7::int8[], $8::text[],
                       $9::text[], $10::text[]);
