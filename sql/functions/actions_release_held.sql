-- Part of actions_claim(): makes actions pending again that a pause, an open endpoint or a push held and holds
-- no longer.
-- actions_release_waiting() does it for caps.
--
-- shards: locked ones. open_endpoints: those whose breaker is open. share: rows at most of each shard and reason.
CREATE OR REPLACE FUNCTION actions_release_held(shards int4[], open_endpoints text[], share int4)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    free record;
BEGIN
    FOR free IN
        -- One step through the index for each reason, however many rows have it.
        WITH RECURSIVE h (lane, held_by) AS (
            SELECT s.lane,
                   (SELECT a.held_by
                    FROM action a
                    WHERE a.lane = s.lane AND a.status = 'held'
                    ORDER BY a.held_by
                    LIMIT 1)
            FROM unnest(shards) AS s (lane)
            UNION ALL
            SELECT h.lane,
                   (SELECT a.held_by FROM action a WHERE a.lane = h.lane AND a.status = 'held' AND a.held_by > h.held_by
                    ORDER BY a.held_by LIMIT 1)
            FROM h WHERE h.held_by IS NOT NULL
        )
        SELECT h.lane, h.held_by FROM h
        WHERE h.held_by IS NOT NULL
          AND h.held_by NOT LIKE 'cap:%'
          AND NOT EXISTS (SELECT FROM org_limit o WHERE o.paused AND 'org:' || o.org_id = h.held_by)
          AND NOT EXISTS (SELECT FROM pipeline_pause p WHERE 'pipeline:' || p.name = h.held_by)
          AND NOT EXISTS (SELECT FROM unnest(open_endpoints) e WHERE 'endpoint:' || e = h.held_by)
          AND NOT EXISTS (SELECT FROM push p
                          WHERE p.name = substr(h.held_by, 6)
                            AND (h.held_by LIKE 'deal:%' AND p.dealt_at IS NULL
                                 OR h.held_by LIKE 'push:%' AND p.decided_at IS NULL))
    LOOP
        UPDATE action a SET status = 'pending', held_by = NULL
        WHERE a.id = ANY (ARRAY(SELECT b.id FROM action b
                                WHERE b.lane = free.lane AND b.status = 'held' AND b.held_by = free.held_by
                                ORDER BY b.perform_at LIMIT share));
    END LOOP;
END
$$;
