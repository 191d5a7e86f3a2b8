-- One round of lanes: see actions_claim() in sql/migrate/013_fair_claims.sql.
-- $1 int4[] lanes, $2 text instance, $3 int4 due rows to look at, $4 int4 most to claim, $5 int8 lease in ms, $6 text[] endpoints
-- that are shut, $7 text[] goals, $8 int4[] their room, then interval (us), burst and concurrency: $9 int8, $10 int8, $11 int4
-- of each organisation, $12 int8, $13 int8, $14 int4 of all together.
SELECT * FROM actions_claim($1::int4[], $2::text, $3::int4, $4::int4, $5::int8, $6::text[], $7::text[], $8::int4[], $9::int8,
                            $10::int8, $11::int4, $12::int8, $13::int8, $14::int4);
