-- Makes partitions of receipt_counted for the given number of days from today on (UTC), and drops those of days that
-- are window_ms before it. It makes none for a day that the default partition has begun to take. Where a batch holds
-- a lock, the next run does it. Returns how many were made and dropped.
CREATE OR REPLACE FUNCTION dedup_partitions(window_ms int8, ahead int4, OUT made int4, OUT dropped int4)
LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    first text := to_char(today - ceil(window_ms / 86400000.0)::int4, 'YYYYMMDD');
    part text;
    day date;
BEGIN
    made := 0;
    dropped := 0;
    FOR day IN SELECT today + n FROM generate_series(0, ahead - 1) n LOOP
        part := 'receipt_counted_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        BEGIN
            -- Attaching lets batches go on, unlike CREATE TABLE … PARTITION OF.
            EXECUTE format('CREATE TABLE %I (LIKE receipt_counted INCLUDING ALL)', part);
            EXECUTE format('ALTER TABLE receipt_counted ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           part, day, day + 1);
            made := made + 1;
        EXCEPTION WHEN lock_not_available OR check_violation OR duplicate_table OR unique_violation THEN
        END;
    END LOOP;
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'receipt_counted'::regclass AND c.relname ~ '^receipt_counted_[0-9]{8}$'
          AND right(c.relname, 8) < first
    LOOP
        BEGIN
            EXECUTE format('DROP TABLE %I', part);
            dropped := dropped + 1;
        EXCEPTION WHEN lock_not_available THEN
        END;
    END LOOP;
END
$$;
