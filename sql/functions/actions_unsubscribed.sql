-- Checks the transitions of a batch to which, as far as the instance knows, no pipeline subscribes
-- (sql/lane/intents.sql). Raises RD003 if that is wrong, seen with the statement's own snapshot. Returns true. tops:
-- the statuses that their messages have reached; mask: all flags that these have gained.
CREATE OR REPLACE FUNCTION actions_unsubscribed(tops int2[], mask int4) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM pipeline_trigger t WHERE t.code >= 9001 AND (mask >> (t.code - 9001)) & 1 = 1)
       OR EXISTS (SELECT FROM status_path p
                  JOIN pipeline_trigger t ON t.code = p.ancestor
                  WHERE p.code = ANY (tops)) THEN
        RAISE EXCEPTION USING ERRCODE = 'RD003', MESSAGE = 'pipelines have changed: one subscribes to this batch';
    END IF;
    RETURN true;
END
$$;
