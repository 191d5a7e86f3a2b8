-- Adds persons: `receiptd suppressions add` and `import`. rows: objects with line, org_id, person or its key in
-- hexadecimal digits, class, since (now), soft_count, soft_within, message_id, made_by (by_whom). Returns how many were
-- added: a person whom the same class suppresses already is passed over. Raises 22023 with the line of a wrong row, and
-- nothing of the call is written then.
--
-- A spreadsheet's guard in front of a text (src/commands/report.c) is taken off where the key says so.
CREATE OR REPLACE FUNCTION suppressions_import(rows jsonb, by_whom text) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    w suppression;
    given bytea;
    added int8 := 0;
BEGIN
    FOR one IN SELECT r FROM jsonb_array_elements(rows) r LOOP
        w := jsonb_populate_record(NULL::suppression, one - 'key');
        w.org_id := COALESCE(w.org_id, '');
        given := decode(one ->> 'key', 'hex');
        w.key := COALESCE(suppression_key(w.org_id, w.person), given);
        IF given <> w.key AND left(w.person, 1) = '''' AND suppression_key(w.org_id, substr(w.person, 2)) = given THEN
            w.person := substr(w.person, 2);
            w.key := given;
        END IF;
        IF w.key IS NULL OR w.person = '' THEN
            RAISE data_exception USING MESSAGE = 'there is no person';
        ELSIF given <> w.key OR length(w.key) <> 32 THEN
            RAISE data_exception USING MESSAGE = 'the key is not that of the organisation and person';
        ELSIF COALESCE(w.class, '') !~ '^[A-Z][A-Z0-9_]{0,62}$' THEN
            RAISE data_exception USING MESSAGE = format('the class "%s" is none: use capitals, digits and _', w.class);
        ELSIF (w.soft_count IS NULL) <> (w.soft_within IS NULL) THEN
            RAISE data_exception USING MESSAGE = 'soft_count and soft_within belong together';
        END IF;
        w.since := COALESCE(w.since, now());
        INSERT INTO suppression (key, org_id, person, class, soft_count, soft_within, since, message_id, made_by)
        SELECT w.key, w.org_id, w.person, w.class, w.soft_count, w.soft_within, w.since, w.message_id,
               COALESCE(w.made_by, by_whom)
        WHERE NOT EXISTS (SELECT FROM suppression s
                          WHERE s.key = w.key AND s.class = w.class AND s.removed_at IS NULL
                            AND (s.soft_count IS NULL OR s.since = w.since));
        added := added + CASE WHEN FOUND THEN 1 ELSE 0 END;
    END LOOP;
    RETURN added;
EXCEPTION WHEN data_exception OR check_violation THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = concat('line ' || (one ->> 'line') || ': ', SQLERRM);
END
$$;
