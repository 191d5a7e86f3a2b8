-- Back to what the configuration says; what the bucket holds stays. $1 text organisation.
UPDATE org_limit SET interval_us = NULL, burst = NULL, concurrency = NULL, weight = 1 WHERE org_id = $1::text;
