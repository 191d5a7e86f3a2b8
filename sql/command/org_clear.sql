-- Back to the configuration's limits; the bucket keeps its tokens. $1 text organisation.
UPDATE org_limit SET interval_us = NULL, burst = NULL, concurrency = NULL, weight = 1, open_runs = NULL
WHERE org_id = $1::text;
