-- Begins runs by records of topics. Positions move in the same transaction, or nothing happens (RD001). Topics and
-- partitions come in order, next is the new position of each; then the records, with place and value, NULL where that
-- is no UTF-8, and the traceparent of a sampled trace. A record that is no JSON object with a subject becomes a dead
-- letter with index -3, as does one that names a message of another organisation than its own. Returns how many runs
-- began, and how many records were refused.
CREATE OR REPLACE FUNCTION actions_topic(topics text[], partitions int4[], expected int8[],
                                         next int8[], record_topics text[],
                                         record_partitions int4[], record_offsets int8[], record_values text[],
                                         record_traces text[],
                                         OUT began int8, OUT refused int8)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    rows jsonb[];
    crossing boolean[];
    s record;
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
    crossing := ARRAY(SELECT r.row ->> 'message_id' IS NOT NULL AND EXISTS (
                          SELECT FROM pipeline_source t JOIN pipeline q ON q.id = t.pipeline_id
                          WHERE t.topic = r.topic
                            AND action_crosses(q.org_field, r.row ->> 'org_id', r.row ->> 'message_id'))
                      FROM unnest(record_topics, rows) WITH ORDINALITY AS r (topic, row, n) ORDER BY r.n);
    FOR s IN SELECT q.name, array_agg(w.org) AS orgs, array_agg(w.subject) AS subjects,
                    array_agg(w.campaign) AS campaigns,
                    array_agg(w.message) AS messages, array_agg(w.data) AS data, array_agg(w.trace) AS traces
             FROM (SELECT r.topic, COALESCE(r.row ->> 'org_id', '') AS org, r.row ->> 'subject' AS subject,
                          r.row ->> 'campaign_id' AS campaign, r.row ->> 'message_id' AS message,
                          r.row - '{org_id,subject,campaign_id,message_id}'::text[] AS data, r.trace
                   FROM unnest(record_topics, rows, crossing, record_traces) AS r (topic, row, crosses, trace)
                   WHERE r.row IS NOT NULL AND NOT r.crosses) w
             JOIN pipeline_source t ON t.topic = w.topic AND (t.orgs IS NULL OR w.org = ANY (t.orgs))
                                    AND (t.campaigns IS NULL OR w.campaign = ANY (t.campaigns))
             JOIN pipeline q ON q.id = t.pipeline_id
             GROUP BY q.name ORDER BY q.name
    LOOP
        began := began + actions_import(s.name, s.orgs, s.subjects, s.campaigns, s.messages, s.data,
                                        s.traces);
    END LOOP;
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload)
    SELECT r.topic, r.partition, r.at_offset, -3, 0, 'not_a_run',
           CASE WHEN r.row IS NULL THEN 'no JSON object with a subject, of texts up to 1000 bytes'
                ELSE format('message %s is not of organisation %s',
                            left(r.row ->> 'message_id', 255), left(r.row ->> 'org_id', 100)) END,
           convert_to(r.value, 'UTF8')
    FROM unnest(record_topics, record_partitions, record_offsets, record_values, rows, crossing)
         AS r (topic, partition, at_offset, value, row, crosses)
    WHERE r.row IS NULL OR r.crosses
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS refused = ROW_COUNT;
END
$$;
