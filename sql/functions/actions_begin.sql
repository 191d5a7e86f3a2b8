-- Makes runs of what transactions of lanes have begun: first those of organisations with few, then the large
-- organisations in turns. Then lets runs go on that waited for a cap.
--
-- row_limit: rows of run_intent to take, of at most a batch each. after: the large organisation that was last; '' at
-- first. taken: rows; runs, oldest_ms: as actions_make_runs() says; last: the value of `after` for the next call.
--
-- Any number of instances do this beside each other: rows that another one has locked are passed over. A crash loses
-- nothing: the row is gone exactly if its runs are there.
CREATE OR REPLACE FUNCTION actions_begin(row_limit int4, after text, OUT taken int4,
                                         OUT runs int8, OUT oldest_ms int8, OUT last text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    places tid[] := '{}';
    place tid;
    org text;
BEGIN
    places := ARRAY(SELECT i.ctid
                    FROM run_intent i
                    WHERE i.org_id = ''
                    ORDER BY i.id
                    LIMIT row_limit FOR UPDATE SKIP LOCKED);
    last := after;
    WHILE cardinality(places) < row_limit LOOP
        SELECT i.ctid, i.org_id INTO place, org FROM run_intent i
        WHERE i.org_id > last AND i.ctid <> ALL (places) ORDER BY i.org_id, i.id LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            places := places || place;
            last := org;
        ELSE
            EXIT WHEN last = '';
            last := '';
        END IF;
    END LOOP;
    taken := cardinality(places);
    runs := 0;
    PERFORM set_config('synchronous_commit', 'off', true); -- a crash takes rows and runs back together
    IF taken > 0 THEN
        SELECT m.runs, m.oldest_ms INTO runs, oldest_ms FROM actions_make_runs(places) m;
    END IF;
    IF EXISTS (SELECT FROM run r WHERE r.status = 'waiting') THEN
        runs := runs + actions_release_waiting(1000);
    END IF;
END
$$;
