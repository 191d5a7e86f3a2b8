-- Pipelines on a table of the platform's. No variables; search_path = the schema.

-- Message ids get the default collation, which gives way: compared with the inbox's key, whatever collation that has,
-- the key's own counts, and its index is used, as with parked_event. The view on the table is made again with its
-- rights; its file stays as it is.
DO $$
DECLARE
    deferred regclass := to_regclass('action_deferred');
    definition text := pg_get_viewdef(deferred);
    owner name := (SELECT c.relowner::regrole FROM pg_class c WHERE c.oid = deferred);
    rights text[] := ARRAY(SELECT format('GRANT %s ON action_deferred TO %s%s', x.privilege_type,
                                         CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
                                         CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
                           FROM pg_class c, aclexplode(c.relacl) x WHERE c.oid = deferred AND x.grantee <> c.relowner);
    one text;
BEGIN
    DROP VIEW IF EXISTS action_deferred;
    DROP INDEX action_awaits;
    ALTER TABLE run_intent ALTER COLUMN messages TYPE text[] COLLATE "default";
    ALTER TABLE run ALTER COLUMN message_id TYPE text COLLATE "default";
    ALTER TABLE action ALTER COLUMN message_id TYPE text COLLATE "default";
    -- Looked up with COLLATE "C", as the key of receiptd's own inbox would have it.
    CREATE INDEX action_awaits ON action (message_id COLLATE "C") WHERE status = 'pending' AND awaits IS NOT NULL;
    IF definition IS NOT NULL THEN
        EXECUTE 'CREATE VIEW action_deferred AS ' || definition;
        EXECUTE format('ALTER VIEW action_deferred OWNER TO %s', owner);
        FOREACH one IN ARRAY rights LOOP
            EXECUTE one;
        END LOOP;
    END IF;
END
$$;

-- A pipeline's `on` fires once for each message: which pairs have fired, by two hashes of pipeline, organisation and
-- message (actions_begun_key()). Runs are tidied up, these stay, for as long as once_per remembers.
CREATE TABLE run_begun (
    first bigint,
    second bigint,
    begun_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (first, second)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
CREATE INDEX run_begun_age ON run_begun USING brin (begun_at) WITH (pages_per_range = 32);

-- The runs that are there already. An import, which `on` does not concern, has data.
INSERT INTO run_begun (first, second, begun_at)
SELECT hashtextextended(k.key COLLATE "C", 0), hashtextextended(k.key COLLATE "C", 1), min(k.started_at)
FROM (SELECT concat_ws(E'\x1f', p.name, r.org_id, r.message_id) AS key, r.started_at
      FROM run r JOIN pipeline p ON p.id = r.pipeline_id
      WHERE r.message_id IS NOT NULL AND r.data IS NULL AND p.org_field = 'org_id') k
GROUP BY 1, 2;

-- Whether the run's message had a row when the run began: then a row that is missing was deleted.
ALTER TABLE run ADD COLUMN had_row boolean NOT NULL DEFAULT false;

-- What waits for another attempt: never longer than an attempt may wait (actions_tidy()).
CREATE INDEX action_retry ON action (perform_at) WHERE status = 'pending' AND attempt > 0;

-- Replaced by others with more or fewer parameters.
DROP FUNCTION IF EXISTS actions_tidy(int8, int4, int8);
DROP FUNCTION IF EXISTS actions_rank(int8[], int4[], timestamptz, text[], text[], int4[], int4);

INSERT INTO schema_version (version) VALUES (7) ON CONFLICT DO NOTHING;
