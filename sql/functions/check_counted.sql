-- Refuses a table that is neither the inbox nor what the inbox is a view of: its inserted rows are not counted.
CREATE OR REPLACE FUNCTION check_counted(base oid, inbox oid) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF base IS DISTINCT FROM inbox AND NOT EXISTS (
        SELECT FROM pg_rewrite w
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
        WHERE w.ev_class = inbox AND d.refclassid = 'pg_class'::regclass AND d.refobjid = base) THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = format('table %s is not the inbox: its rows are not counted', base::regclass);
    END IF;
END
$$;
