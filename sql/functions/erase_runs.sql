-- Part of erase_messages(): ends and deletes the runs of these messages, and those of the customer
-- (erase_run_is_of()), with their actions. Calls to subjects that are erased count no more. The answer of a call in
-- flight then changes nothing. Intents come first, so that a transaction that is about to make runs of one is waited
-- for. Returns how many runs and intents went.
CREATE OR REPLACE FUNCTION erase_runs(ids text[], customer text, customer_column text)
RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    intents int8;
    gone int8[];
    subjects int8[];
BEGIN
    SELECT COALESCE(sum(cardinality(ARRAY(SELECT m FROM unnest(i.messages) m WHERE m = ANY (ids)))), 0) INTO intents
    FROM run_intent i WHERE i.messages && ids;
    UPDATE run_intent i
    SET (messages, orgs, campaigns, traces) = (
        SELECT COALESCE(array_agg(w.message ORDER BY w.n), '{}'),
               CASE WHEN i.orgs IS NOT NULL THEN COALESCE(array_agg(w.org ORDER BY w.n), '{}') END,
               COALESCE(array_agg(w.campaign ORDER BY w.n), '{}'),
               CASE WHEN i.traces IS NOT NULL THEN COALESCE(array_agg(w.trace ORDER BY w.n), '{}') END
        FROM unnest(i.messages, i.orgs, i.campaigns, i.traces) WITH ORDINALITY AS w (message, org, campaign, trace, n)
        WHERE w.message <> ALL (ids))
    WHERE i.messages && ids;
    DELETE FROM run_intent i WHERE cardinality(i.messages) = 0;
    WITH r AS (
        DELETE FROM run r
        WHERE r.message_id = ANY (ids) OR r.subject = ANY (ids) OR erase_run_is_of(r, customer, customer_column)
        RETURNING r.id, r.subject, r.subject_hash, erase_run_is_of(r, customer, customer_column) AS person
    )
    SELECT COALESCE(array_agg(r.id), '{}'), array_agg(r.subject_hash) FILTER (WHERE r.person OR r.subject = ANY (ids))
    INTO gone, subjects
    FROM r;
    DELETE FROM subject_call k WHERE k.subject_hash = ANY (subjects);
    WITH a AS (
        DELETE FROM action a WHERE a.run_id = ANY (gone) OR a.message_id = ANY (ids) RETURNING a.id
    )
    DELETE FROM action_overlap o USING a WHERE o.action_id = a.id;
    DELETE FROM push_member m WHERE m.run_id = ANY (gone);
    RETURN intents + cardinality(gone);
END
$$;
