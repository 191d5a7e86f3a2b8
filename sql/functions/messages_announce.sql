-- Inserts the messages that records announce, and deletes those of tombstones. Positions move in the same transaction,
-- or nothing happens (RD001). Topics and partitions come in order, next is the new position of each; then the records,
-- with their place; keys, texts and owned as for messages_parse(). Announcements and tombstones of one message take
-- effect in the order of the records. A record that cannot be announced becomes a dead letter with index -4, the k-th
-- object of an array with -4 - k. Returns how many had which fate, with the names of the fields that were left out.
CREATE OR REPLACE FUNCTION messages_announce(topics text[], partitions int4[], expected int8[], next int8[],
                                             record_topics text[], record_partitions int4[], record_offsets int8[],
                                             keys text[], texts text[], owned text[])
RETURNS TABLE (fate text, items int8, ignored text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    parsed announcement[];
    batch announcement[];
    done announcement[];
BEGIN
    PERFORM topic_fence('messages', 'message_progress', topics, partitions, expected, next);
    SET CONSTRAINTS ALL IMMEDIATE; -- messages_store() finds out what they refuse
    parsed := messages_parse(keys, texts, owned);
    done := ARRAY(SELECT p FROM unnest(parsed) p WHERE p.fate IS NOT NULL);
    FOR batch IN
        SELECT array_agg(w.p ORDER BY (w.p).id COLLATE "C")
        FROM (SELECT p, row_number() OVER (PARTITION BY p.id ORDER BY p.record, p.item) AS turn
              FROM unnest(parsed) p WHERE p.fate IS NULL) w
        GROUP BY w.turn, (w.p).fields
        ORDER BY w.turn, (w.p).fields
    LOOP
        done := done || messages_store(batch);
    END LOOP;
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload)
    SELECT record_topics[l.record], record_partitions[l.record], record_offsets[l.record], -4 - l.item, 0, l.fate,
           letter_detail(l.detail, octet_length(b.payload)), substr(b.payload, 1, 65536)
    FROM unnest(done) l
    CROSS JOIN LATERAL (
        SELECT CASE WHEN l.fate <> 'retired_message' OR NOT message_is_erased(l.id)
                    THEN convert_to(CASE l.item WHEN 0 THEN texts[l.record] ELSE l.document::text END, 'UTF8')
               END AS payload) b
    WHERE l.fate NOT IN ('announced', 'repeated', 'retired', 'unknown')
    ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT l.fate, count(DISTINCT (l.record, l.item)), string_agg(DISTINCT k.key, ', ')
    FROM unnest(done) l
    LEFT JOIN LATERAL (SELECT CASE WHEN o.key ~ '^[a-z_][a-z0-9_]{0,62}$' THEN o.key ELSE '…' END AS key
                       FROM jsonb_each(CASE WHEN l.fields IS NULL THEN '{}' ELSE l.document END) o
                       WHERE o.key <> ALL (l.fields) AND jsonb_typeof(o.value) <> 'null') k ON true
    GROUP BY l.fate;
END
$$;
