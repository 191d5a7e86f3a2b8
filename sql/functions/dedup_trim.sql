-- Empties the slots of receipt_counted whose day is out of the window: window_ms before today, and tomorrow, are kept.
-- A slot that a statement holds is left for the next time. Returns how many were emptied.
CREATE OR REPLACE FUNCTION dedup_trim(window_ms int8) RETURNS int4 LANGUAGE plpgsql SET lock_timeout = '20ms' AS $$
DECLARE
    emptied int4 := 0;
    today int8 := floor(extract(epoch FROM now()) / 86400);
    slot int8;
BEGIN
    FOR slot IN
        SELECT s FROM generate_series(0, 15) s
        WHERE s NOT IN (SELECT d & 15 FROM generate_series(today - ceil(window_ms / 86400000.0)::int8, today + 1) d)
    LOOP
        CONTINUE WHEN pg_relation_size(format('receipt_counted_%s', slot)::regclass) = 0;
        BEGIN
            EXECUTE format('TRUNCATE receipt_counted_%s', slot);
            emptied := emptied + 1;
        EXCEPTION WHEN lock_not_available THEN
        END;
    END LOOP;
    RETURN emptied;
END
$$;
