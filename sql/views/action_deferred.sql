-- Everything that is not over, and why it does not run now.
CREATE OR REPLACE VIEW action_deferred AS
SELECT a.id, a.run_id, p.name AS pipeline, s.stage, s.op, s.target,
       a.org_id, a.message_id, a.status, a.attempt, a.perform_at,
       CASE
           WHEN a.status = 'running' AND a.lease_until < now() THEN 'its lease ran out before a result came'
           WHEN a.status = 'running' THEN 'is running'
           WHEN o.paused THEN 'the organisation is paused'
           WHEN k.name IS NOT NULL THEN 'the pipeline is paused'
           WHEN a.held_by LIKE 'deal:%' AND a.status = 'held' THEN 'gathers until push ' || s.target || ' is dealt'
           WHEN a.held_by LIKE 'push:%' AND a.status = 'held' THEN 'waits for the decision of push ' || s.target
           WHEN a.held_by LIKE 'cap:%' THEN 'the organisation has as many open runs as it may'
           WHEN a.status = 'held' THEN 'held by ' || a.held_by || CASE WHEN a.held_by LIKE 'endpoint:%'
               THEN ', until a call that tries it succeeds: receiptd ctl status says when it goes out' ELSE '' END
           WHEN a.awaits IS NOT NULL AND a.perform_at > now() THEN 'awaits ' || COALESCE(l.name, a.awaits::text)
           WHEN a.perform_at > now() AND a.class = 'capped' THEN 'the subject has had as many calls as it may'
           WHEN a.perform_at > now() AND a.held_by = 'window' THEN 'waits for its window to open'
           WHEN a.perform_at > now() AND a.class = 'lookup_failed' THEN 'its look-up failed'
           WHEN a.perform_at > now() AND a.attempt > 0 THEN 'tried ' || a.attempt || ' times: ' || COALESCE(a.class, '')
           WHEN a.perform_at > now() THEN 'is not due'
           WHEN EXISTS (SELECT FROM action b WHERE b.subject_hash = a.subject_hash AND b.status = 'running')
               THEN 'another action of the subject is running'
           WHEN o.full_at_us > (extract(epoch FROM now()) * 1000000)
                               + (COALESCE(o.burst, 1) - 1) * COALESCE(o.interval_us, 0)
                AND o.interval_us > 0 THEN 'the rate of the organisation'
           ELSE 'waits for its turn'
       END AS because
FROM action a
JOIN pipeline p ON p.id = a.pipeline_id
JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
LEFT JOIN org_limit o ON o.org_id = a.org_id
LEFT JOIN pipeline_pause k ON k.name = p.name
LEFT JOIN message_status_priority l ON l.code = a.awaits
WHERE a.status IN ('pending', 'held', 'running');
