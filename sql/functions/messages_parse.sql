-- The announcements and tombstones in records. A record has one object, or an array of them. keys: those of
-- tombstones, NULL for other records. texts: the values; NULL: a value that no text can hold. owned: columns that
-- receiptd fills. An announcement may give one of these, the status, by name or code. `fields` has only fields that are
-- columns of the inbox and not null. Where the object cannot be announced, `fate` is the reason of its dead letter.
CREATE OR REPLACE FUNCTION messages_parse(keys text[], texts text[], owned text[]) RETURNS announcement[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    documents jsonb[];
    columns text[] := ARRAY(
        SELECT a.attname FROM pg_attribute a
        WHERE a.attrelid = 'message_inbox'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
          AND a.attidentity <> 'a' AND (a.attname = 'status' OR a.attname::text <> ALL (owned)));
BEGIN
    BEGIN
        documents := ARRAY(SELECT t.value::jsonb FROM unnest(texts) WITH ORDINALITY AS t (value, n) ORDER BY t.n);
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN -- one by one
        documents := ARRAY(SELECT action_json(t.value) FROM unnest(texts) WITH ORDINALITY AS t (value, n) ORDER BY t.n);
    END;
    RETURN ARRAY(
        SELECT ROW(r.n, r.item, r.id,
                   CASE WHEN s.code IS NULL THEN r.document ELSE r.document || jsonb_build_object('status', s.code) END,
                   f.fields,
                   CASE WHEN p.problem IS NOT NULL THEN 'not_a_message'
                        WHEN s.code IS NULL AND 'status' = ANY (f.fields) THEN 'unknown_status' END,
                   p.problem)::announcement
        FROM (SELECT d.n, 0 AS item, d.document, d.key, COALESCE(d.key, d.document ->> 'message_id') AS id
              FROM unnest(documents, keys) WITH ORDINALITY AS d (document, key, n)
              WHERE jsonb_typeof(d.document) IS DISTINCT FROM 'array'
              UNION ALL
              SELECT d.n, i.item, i.document, NULL, i.document ->> 'message_id'
              FROM unnest(documents) WITH ORDINALITY AS d (document, n)
              CROSS JOIN LATERAL jsonb_array_elements(d.document) WITH ORDINALITY AS i (document, item)
              WHERE jsonb_typeof(d.document) = 'array') r
        CROSS JOIN LATERAL (
            SELECT CASE WHEN r.key = '' THEN 'a tombstone names its message in the key, and this one has none'
                        WHEN r.key IS NULL AND jsonb_typeof(r.document) IS DISTINCT FROM 'object' THEN 'no JSON object'
                        WHEN r.key IS NULL AND jsonb_typeof(r.document -> 'message_id') IS DISTINCT FROM 'string'
                        THEN 'message_id is no text'
                        WHEN octet_length(r.id) NOT BETWEEN 1 AND 255 THEN 'message_id has not 1 to 255 bytes'
                   END AS problem) p
        CROSS JOIN LATERAL (
            SELECT CASE WHEN p.problem IS NULL AND r.key IS NULL
                        THEN ARRAY(SELECT e.key FROM jsonb_each(r.document) e
                                   WHERE e.key = ANY (columns) AND jsonb_typeof(e.value) <> 'null' ORDER BY e.key)
                   END AS fields) f
        LEFT JOIN message_status_priority s
            ON 'status' = ANY (f.fields) AND s.flag_bit IS NULL AND r.document ->> 'status' IN (s.name, s.code::text));
END
$$;
