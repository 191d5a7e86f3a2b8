-- Raises if another publisher has taken rows whose sums are in this one's memory: none of these sums may be added.
CREATE OR REPLACE FUNCTION fold_check_gone(expected int8, deleted int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF expected <> deleted THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001',
            MESSAGE = format('%s of %s rows of events are left', deleted, expected);
    END IF;
END
$$;
