-- Whether a table has the columns of first times (counters.times): all six, each of its type.
-- migrate/times_problems.sql says which ones are missing.
CREATE OR REPLACE FUNCTION inbox_has_times(base oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT count(*) = 6 FROM pg_attribute a
    WHERE a.attrelid = base AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attname, a.atttypid) IN (('first_sent_at', 'timestamptz'::regtype),
                                      ('first_delivered_at', 'timestamptz'::regtype),
                                      ('first_opened_at', 'timestamptz'::regtype),
                                      ('first_clicked_at', 'timestamptz'::regtype),
                                      ('first_gateway', 'text'::regtype), ('prev_times', 'text'::regtype))
$$;
