-- A JSON text in which no value is one of these any longer: each becomes null. Names of members stay as they are.
CREATE OR REPLACE FUNCTION erase_text(document text, needles text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    quoted text;
BEGIN
    FOREACH quoted IN ARRAY needles LOOP
        quoted := to_json(quoted)::text;
        IF position(quoted IN document) > 0 THEN
            document := regexp_replace(document, regexp_replace(quoted, '[^[:alnum:]]', '\\\&', 'g') || '(?!\s*:)', 'null', 'g');
        END IF;
    END LOOP;
    RETURN document;
END
$$;
