-- Begins runs by records of topics. Positions move in the same transaction, or nothing happens (RD001). Topics and
-- partitions come in order, next is the new position of each; then the records, with place and value, NULL where that
-- is no UTF-8, and the traceparent of a sampled trace. A record that is no JSON object with a subject becomes a dead
-- letter with index -3, as does one that names a stage that its pipeline does not have, or a message of another
-- organisation than its own, and one whose run is beyond a cap. Returns how many runs began, and how many records were
-- refused.
CREATE OR REPLACE FUNCTION actions_topic(topics text[], partitions int4[], expected int8[],
                                         next int8[], record_topics text[],
                                         record_partitions int4[], record_offsets int8[], record_values text[],
                                         record_traces text[],
                                         OUT began int8, OUT refused int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    rows jsonb[];
    faults text[]; -- of the rows; NULL: none
    beyond jsonb := '{}'; -- records that a cap refuses, by number: the pipeline whose run did not begin
    s record;
    made record;
BEGIN
    began := 0;
    PERFORM topic_fence('actions', 'action_progress', topics, partitions, expected, next);
    BEGIN
        rows := ARRAY(SELECT v.value::jsonb FROM unnest(record_values) WITH ORDINALITY AS v (value, n) ORDER BY v.n);
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN -- one by one
        rows := ARRAY(SELECT action_json(v.value)
                      FROM unnest(record_values) WITH ORDINALITY AS v (value, n)
                      ORDER BY v.n);
    END;
    rows := ARRAY(SELECT CASE WHEN jsonb_typeof(r.row) = 'object' AND GREATEST(
                                  octet_length(r.row ->> 'org_id'), octet_length(r.row ->> 'subject'),
                                  octet_length(r.row ->> 'campaign_id'), octet_length(r.row ->> 'message_id')) <= 1000
                                  AND r.row ->> 'subject' <> '' THEN r.row END
                  FROM unnest(rows) WITH ORDINALITY AS r (row, n) ORDER BY r.n);
    faults := ARRAY(
        SELECT CASE WHEN r.row IS NULL THEN 'no JSON object with a subject, of texts up to 1000 bytes'
                    WHEN r.row ->> 'message_id' IS NOT NULL OR r.row ->> 'stage' <> '' THEN (
                        SELECT min(COALESCE(
                            CASE WHEN action_crosses(q.org_field, r.row ->> 'org_id', r.row ->> 'message_id')
                                 THEN format('message %s is not of organisation %s',
                                             left(r.row ->> 'message_id', 255), left(r.row ->> 'org_id', 100)) END,
                            CASE WHEN (t.orgs IS NULL OR COALESCE(r.row ->> 'org_id', '') = ANY (t.orgs))
                                      AND (t.campaigns IS NULL OR r.row ->> 'campaign_id' = ANY (t.campaigns))
                                 THEN action_stage_fault(q.name, q.stages, NULLIF(r.row ->> 'stage', '')) END))
                        FROM pipeline_source t JOIN pipeline q ON q.id = t.pipeline_id
                        WHERE t.topic = r.topic) END
        FROM unnest(record_topics, rows) WITH ORDINALITY AS r (topic, row, n) ORDER BY r.n);
    IF actions_are_capped() THEN -- one order of locks over all pipelines
        PERFORM FROM actions_room(ARRAY(SELECT COALESCE(r.row ->> 'org_id', '') FROM unnest(rows) AS r (row)));
    END IF;
    FOR s IN SELECT q.name, w.stage,
                    array_agg(w.org ORDER BY w.n) AS orgs, array_agg(w.subject ORDER BY w.n) AS subjects,
                    array_agg(w.campaign ORDER BY w.n) AS campaigns, array_agg(w.message ORDER BY w.n) AS messages,
                    array_agg(w.data ORDER BY w.n) AS data, array_agg(w.n ORDER BY w.n) AS places,
                    array_agg(w.trace ORDER BY w.n) AS traces
             FROM (SELECT r.n, r.topic, COALESCE(r.row ->> 'org_id', '') AS org, r.row ->> 'subject' AS subject,
                          r.row ->> 'campaign_id' AS campaign, r.row ->> 'message_id' AS message,
                          NULLIF(r.row ->> 'stage', '') AS stage,
                          r.row - '{org_id,subject,campaign_id,message_id,stage}'::text[] AS data, r.trace
                   FROM unnest(record_topics, rows, faults, record_traces)
                        WITH ORDINALITY AS r (topic, row, fault, trace, n)
                   WHERE r.fault IS NULL) w
             JOIN pipeline_source t ON t.topic = w.topic AND (t.orgs IS NULL OR w.org = ANY (t.orgs))
                                    AND (t.campaigns IS NULL OR w.campaign = ANY (t.campaigns))
             JOIN pipeline q ON q.id = t.pipeline_id
             GROUP BY q.name, w.stage ORDER BY q.name, w.stage
    LOOP
        SELECT * INTO made FROM actions_import(s.name, s.orgs, s.subjects, s.campaigns, s.messages, s.data,
                                                s.stage, false, s.traces);
        began := began + made.began;
        IF made.refused > 0 THEN
            beyond := beyond || (SELECT jsonb_object_agg(s.places[f.n], s.name)
                                 FROM unnest(made.fates) WITH ORDINALITY AS f (fate, n) WHERE f.fate = 'r');
        END IF;
    END LOOP;
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload)
    SELECT r.topic, r.partition, r.at_offset, -3, 0,
           CASE WHEN beyond ? r.n::text THEN 'over_cap' ELSE 'not_a_run' END,
           CASE WHEN beyond ? r.n::text
                THEN format('pipeline %s: organisation %s has as many open runs as it may', beyond ->> r.n::text,
                            left(r.row ->> 'org_id', 100))
                ELSE r.fault END,
           convert_to(r.value, 'UTF8')
    FROM unnest(record_topics, record_partitions, record_offsets, record_values, rows, faults)
         WITH ORDINALITY AS r (topic, partition, at_offset, value, row, fault, n)
    WHERE r.fault IS NOT NULL OR beyond ? r.n::text
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS refused = ROW_COUNT;
END
$$;
