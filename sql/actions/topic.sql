-- Records of topics that begin runs: see actions_topic(). $1 text[] topics, $2 int4[] partitions, $3 int8[] expected,
-- $4 int8[] next, then the records: $5 text[] topics, $6 int4[] partitions, $7 int8[] offsets, $8 text[] values,
-- $9 text[] sampled traceparents.
SELECT *
FROM actions_topic($1::text[], $2::int4[], $3::int8[], $4::int8[], $5::text[], $6::int4[], $7::int8[], $8::text[],
                   $9::text[]);
