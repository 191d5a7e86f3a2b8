-- Ends a probe: everything that its transaction did is rolled back on purpose.
CREATE OR REPLACE FUNCTION probe_abort() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'RD002', MESSAGE = 'probe went through and is rolled back as intended';
END
$$;
