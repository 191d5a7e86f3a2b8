-- One round of a lane: see actions_claim() in sql/migrate/005_actions.sql.
-- $1 int4 lane, $2 text instance, $3 int4 most, $4 int8 lease in ms, $5 text[] endpoints that are shut, $6 text[] goals,
-- $7 int4[] their room, then interval (us), burst and concurrency: $8 int8, $9 int8, $10 int4 of each organisation,
-- $11 int8, $12 int8, $13 int4 of all together.
SELECT * FROM actions_claim($1::int4, $2::text, $3::int4, $4::int8, $5::text[], $6::text[], $7::int4[], $8::int8, $9::int8,
                            $10::int4, $11::int8, $12::int8, $13::int4);
