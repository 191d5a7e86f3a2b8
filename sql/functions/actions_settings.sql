-- Stores the keys of the section `actions` that functions need. Raises 22023 for a zone that PostgreSQL does not know.
CREATE OR REPLACE FUNCTION actions_settings(settings jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s record;
BEGIN
    SELECT * INTO s
    FROM jsonb_to_record(settings)
         AS s (open_runs int4, beyond_open_runs text, caps int4[], cap_units text[], beyond_subject_cap text, zone text,
               zone_field text);
    IF action_zone(jsonb_build_object('zone', s.zone), NULL, 'zone', NULL) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('actions.zone: PostgreSQL knows no zone %s', s.zone),
            HINT = 'SELECT name FROM pg_timezone_names lists all zones';
    END IF;
    UPDATE action_setting t
    SET open_runs = s.open_runs, beyond_open_runs = s.beyond_open_runs, caps = s.caps, cap_units = s.cap_units,
        beyond_subject_cap = s.beyond_subject_cap, zone = s.zone, zone_field = s.zone_field;
END
$$;
