-- Limits of an organisation, at once for all instances: $1 text organisation ('*': of all together), $2 int8 interval
-- in us, $3 int8 burst, $4 int4 concurrency, $5 int4 weight, $6 bool paused, $7 int4 open runs; NULL: as it is.
INSERT INTO org_limit AS o (org_id, interval_us, burst, concurrency, weight, paused, open_runs)
VALUES ($1::text, $2::int8, $3::int8, $4::int4, COALESCE($5::int4, 1), COALESCE($6::bool, false), $7::int4)
ON CONFLICT (org_id) DO UPDATE
SET interval_us = COALESCE($2::int8, o.interval_us), burst = COALESCE($3::int8, o.burst),
    concurrency = COALESCE($4::int4, o.concurrency), weight = COALESCE($5::int4, o.weight),
    paused = COALESCE($6::bool, o.paused), open_runs = COALESCE($7::int4, o.open_runs);
