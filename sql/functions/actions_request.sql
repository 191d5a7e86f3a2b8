-- Begins the runs of one request or file, as a whole or not at all: pipeline_name; runs: a list of {org_id, subject,
-- campaign_id, message_id, stage, data}; stage: where those enter that name none, NULL: at the first one; trace: a
-- sampled traceparent, NULL: none. Returns rows (runs that began), waiting and dropped (by a cap), and over: as in
-- actions_fates(). Raises what actions_import() does.
CREATE OR REPLACE FUNCTION actions_request(pipeline_name text, runs jsonb, stage text, trace text, OUT rows int8,
                                           OUT waiting int8, OUT dropped int8, OUT over text)
LANGUAGE plpgsql AS $$
DECLARE
    s record;
    made record;
BEGIN
    rows := 0;
    waiting := 0;
    dropped := 0;
    FOR s IN SELECT w.stage, array_agg(COALESCE(w.org_id, '')) AS orgs, array_agg(w.subject) AS subjects,
                    array_agg(w.campaign_id) AS campaigns, array_agg(w.message_id) AS messages,
                    array_agg(w.data) AS data, array_agg(trace) AS traces
             FROM (SELECT r.org_id, r.subject, r.campaign_id, r.message_id, r.data,
                          COALESCE(NULLIF(r.stage, ''), actions_request.stage) AS stage
                   FROM jsonb_to_recordset(runs)
                        AS r (org_id text, subject text, campaign_id text, message_id text, stage text, data jsonb)) w
             GROUP BY w.stage ORDER BY w.stage
    LOOP
        SELECT * INTO made
        FROM actions_import(pipeline_name, s.orgs, s.subjects, s.campaigns, s.messages, s.data, s.stage, true,
                            s.traces);
        IF made.over IS NOT NULL THEN -- takes back those of the stages before
            RAISE EXCEPTION USING MESSAGE = made.over;
        END IF;
        rows := rows + made.began - made.waiting;
        waiting := waiting + made.waiting;
        dropped := dropped + made.dropped;
    END LOOP;
EXCEPTION WHEN raise_exception THEN
    rows := 0;
    waiting := 0;
    dropped := 0;
    over := made.over;
    INSERT INTO pipeline_delta (name, started, repeated, refused, dropped, deferred)
    VALUES (pipeline_name, 0, 0, jsonb_array_length(runs), 0, 0);
END
$$;
