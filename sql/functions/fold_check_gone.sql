-- Somebody else has taken rows whose sums are in this publisher's memory: nothing of them may be added.
CREATE OR REPLACE FUNCTION fold_check_gone(expected int8, deleted int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF expected <> deleted THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format('%s of %s rows of events are left', deleted, expected);
    END IF;
END
$$;
