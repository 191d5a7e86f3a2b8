-- Limits that differ from the configuration, and what was granted and deferred.
SELECT o.org_id, CASE WHEN o.interval_us > 0 THEN round(60000000.0 / o.interval_us, 2)
                      WHEN o.interval_us = 0 THEN 0 END AS rate_per_minute,
       o.burst, o.concurrency, o.weight, o.paused, o.granted, o.deferred, o.open_runs,
       (SELECT count(*) FROM action a
        WHERE a.org_id = o.org_id AND a.status = 'running' AND a.lease_until >= now()) AS running,
       (SELECT count(*) FROM run r WHERE r.org_id = o.org_id AND r.status = 'active') AS open,
       (SELECT count(*) FROM run r WHERE r.org_id = o.org_id AND r.status = 'waiting') AS waiting
FROM org_limit o
ORDER BY o.org_id;
