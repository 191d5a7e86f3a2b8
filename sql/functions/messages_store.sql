-- Inserts announced messages that fill the same columns, or deletes those of tombstones, and gives each its fate. No id
-- comes twice, and they are sorted: the order in which all transactions lock. The triggers of the inbox count and book
-- them as they do for the platform. Where the database refuses one, it is found by halves.
--
-- A message that is there stays as it is. One that was deleted does not come back while its id is remembered: a topic
-- that is read again must not count it twice, nor bring back a person who was erased.
CREATE OR REPLACE FUNCTION messages_store(items announcement[]) RETURNS announcement[]
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    half int4 := cardinality(items) / 2;
    ids text[] := ARRAY(SELECT i.id FROM unnest(items) i);
    done text[];
    state text;
    message text;
BEGIN
    IF items[1].fields IS NULL THEN
        PERFORM FROM message_inbox m WHERE m.message_id = ANY (ids) ORDER BY m.message_id COLLATE "C" FOR UPDATE;
        WITH gone AS (DELETE FROM message_inbox m WHERE m.message_id = ANY (ids) RETURNING m.message_id)
        SELECT array_agg(DISTINCT g.message_id) INTO done FROM gone g;
    ELSE
        EXECUTE (SELECT format(
            'WITH made AS (INSERT INTO message_inbox (%1$s) SELECT %1$s '
            'FROM jsonb_populate_recordset(NULL::message_inbox, $1) r '
            'WHERE (SELECT true FROM message_inbox m WHERE m.message_id = r.message_id LIMIT 1) IS NULL '
            'AND (SELECT true FROM inbox_detached d WHERE d.message_id = r.message_id) IS NULL '
            'AND (SELECT true FROM retired_message t WHERE t.hash = hashtextextended(r.message_id COLLATE "C", 0) '
            'LIMIT 1) IS NULL ON CONFLICT DO NOTHING RETURNING message_id) SELECT array_agg(message_id) FROM made',
            string_agg(format('%I', f), ', ')) FROM unnest(items[1].fields) f)
        INTO done USING (SELECT jsonb_agg(i.document ORDER BY i.n)
                         FROM unnest(items) WITH ORDINALITY AS i (record, item, id, document, fields, fate, detail, n));
    END IF;
    RETURN ARRAY(
        SELECT ROW(i.record, i.item, i.id, i.document, i.fields,
                   CASE WHEN d.id IS NOT NULL THEN CASE WHEN i.fields IS NULL THEN 'retired' ELSE 'announced' END
                        WHEN i.fields IS NULL THEN 'unknown'
                        WHEN m.other <> '' THEN 'announced_differently'
                        WHEN m.other = '' THEN 'repeated'
                        WHEN message_is_erased(i.id) IS NOT NULL THEN 'retired_message'
                        ELSE 'database' END,
                   CASE WHEN m.other <> '' THEN format('the message stays as it is; other values: %s', m.other)
                        WHEN i.fields IS NOT NULL AND d.id IS NULL AND m.other IS NULL
                        THEN 'a message with another id has its values of a unique key' END)::announcement
        FROM unnest(items) i
        LEFT JOIN unnest(done) AS d (id) ON d.id = i.id
        LEFT JOIN LATERAL (
            SELECT COALESCE((SELECT string_agg(n.key, ', ' ORDER BY n.key)
                             FROM jsonb_each(to_jsonb(jsonb_populate_record(x.*, i.document))) n
                             WHERE n.key = ANY (i.fields) AND n.key <> 'status'
                               AND n.value IS DISTINCT FROM to_jsonb(x.*) -> n.key), '') AS other
            FROM message_inbox x
            WHERE d.id IS NULL AND i.fields IS NOT NULL AND x.message_id = i.id LIMIT 1) m ON true);
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR raise_exception OR program_limit_exceeded
          OR generated_always THEN
    IF half > 0 THEN
        RETURN messages_store(items[:half]) || messages_store(items[half + 1:]);
    END IF;
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    items[1].fate := 'database';
    items[1].detail := concat(state, ' ', left(CASE WHEN state LIKE '22%' THEN regexp_replace(message, '".*"', '"…"')
                                                    ELSE message END, 400)); -- 22: the quoted text is the value
    RETURN items;
END
$$;
