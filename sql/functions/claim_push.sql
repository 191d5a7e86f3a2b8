-- For the platform's own senders: whether the caller may reach a subject within a push. True for one caller ever: a
-- run of a pipeline with this push in once_per, or a sender. The claim belongs to the caller's transaction and goes
-- with its rollback; a second caller waits for the end of the first one's transaction. fields: the values of
-- once_per.by, in its order. Raises 22023 where a text is NULL, empty or longer than 1000 bytes.
CREATE OR REPLACE FUNCTION claim_push(push text, VARIADIC fields text[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF (SELECT count(*) FILTER (WHERE octet_length(f) BETWEEN 1 AND 1000) <> count(*) OR count(*) < 2
        FROM unnest(claim_push.push || fields) f) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'claim_push: push and subject are texts of 1 to 1000 bytes',
            HINT = 'give the values of once_per.by in its order: claim_push(''spring'', customer_id)';
    END IF;
    INSERT INTO run (pipeline_id, org_id, subject, subject_hash, once_key, status, ended_at)
    SELECT 0, '', s.subject, action_subject_hash('', s.subject),
           action_once_key(NULL, claim_push.push, to_jsonb(fields)), 'done', clock_timestamp()
    FROM (SELECT fields[cardinality(fields)] AS subject) s
    ON CONFLICT (once_key) WHERE once_key IS NOT NULL DO NOTHING;
    RETURN FOUND;
END
$$;
-- pg_temp comes last: a caller's temporary table cannot take the place of `run`.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION claim_push(text, text[]) SET search_path = %I, pg_temp', current_schema());
END
$$;
