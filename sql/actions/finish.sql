-- Results of actions: $1 text instance, $2 int8[] ids, $3 int8[] tokens, $4 text[] results (as of actions_finish()),
-- $5 int8[] waits in ms, $6 text[] classes, $7 int4[] statuses of the answers, $8 text[] answers.
SELECT *
FROM actions_finish($1::text, $2::int8[], $3::int8[], $4::text[], $5::int8[], $6::text[], $7::int4[], $8::text[]);
