-- Erases messages and all that is stored of them, in the transaction that calls it: `receiptd erase`. The inbox's
-- trigger books the rows. ids: of messages; customer, customer_column: whose they are and the column that says so
-- (NULL: only messages are named).
--
-- READ COMMITTED: each statement sees what was committed before it. Rows of the inbox come early, and in the order in
-- which all transactions lock. So a batch that still changes one is waited for, and the statements after that find
-- what it has stored. Aliases are found by the message id: without an index on that, by reading all of them.
-- accounts, gateway_ids: of these aliases. The caller erases dead letters that name the messages, or these:
-- commands/inbox/erase_letters.c.
CREATE OR REPLACE FUNCTION erase_messages(ids text[], customer text, customer_column text, OUT messages int8,
                                          OUT parked int8, OUT timeline int8, OUT aliases int8, OUT runs int8,
                                          OUT folds int8, OUT accounts text[], OUT gateway_ids text[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    here text[];
BEGIN
    -- An alias may lead to another alias of its account.
    WITH RECURSIVE leads AS (
        SELECT a.channel_account, a.gateway_id FROM message_alias a WHERE a.message_id = ANY (ids)
        UNION
        SELECT a.channel_account, a.gateway_id
        FROM leads l JOIN message_alias a ON a.channel_account = l.channel_account AND a.message_id = l.gateway_id
    )
    SELECT COALESCE(array_agg(l.channel_account), '{}'), COALESCE(array_agg(l.gateway_id), '{}')
    INTO accounts, gateway_ids
    FROM leads l;
    WITH gone AS (
        DELETE FROM parked_event p
        WHERE p.message_id = ANY (ids)
           OR p.message_id = ANY (gateway_ids)
              AND EXISTS (SELECT FROM unnest(accounts, gateway_ids) AS w (account, id)
                          WHERE w.account = p.account AND w.id = p.message_id)
        RETURNING p.topic, p.partition, p."offset", p.index, p.message_id
    ),
    followed AS (
        DELETE FROM message_timeline t USING gone g
        WHERE t.message_id = g.message_id AND t.topic = g.topic AND t.partition = g.partition
          AND t."offset" = g."offset" AND t.index = g.index
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM followed) INTO parked, timeline;
    PERFORM FROM message_inbox m WHERE m.message_id = ANY (ids) ORDER BY m.message_id COLLATE "C" FOR UPDATE;
    WITH gone AS (
        DELETE FROM message_inbox m WHERE m.message_id = ANY (ids) RETURNING m.message_id
    )
    SELECT count(*), array_agg(g.message_id) INTO messages, here FROM gone g;
    PERFORM erase_stream(ids, here);
    -- The trigger remembers them as deleted: now as erased.
    DELETE FROM retired_message r
    WHERE r.hash IN (SELECT hashtextextended(i.id COLLATE "C", 0) FROM unnest(ids) i (id));
    INSERT INTO retired_message (hash, erased)
    SELECT hashtextextended(i.id COLLATE "C", 0), true FROM unnest(ids) i (id)
    UNION ALL
    SELECT erased_alias_hash(w.account, w.id), true FROM unnest(accounts, gateway_ids) AS w (account, id);
    WITH gone AS (
        DELETE FROM message_timeline t WHERE t.message_id = ANY (ids) RETURNING 1
    )
    SELECT timeline + count(*) INTO timeline FROM gone;
    DELETE FROM message_part p WHERE p.message_id = ANY (ids);
    -- A receipt under a gateway's id that is a dead letter by now.
    WITH gone AS (
        DELETE FROM message_timeline t
        WHERE t.message_id = ANY (gateway_ids) AND t.old IS NULL
          AND NOT EXISTS (SELECT FROM parked_event p
                          WHERE p.topic = t.topic AND p.partition = t.partition AND p."offset" = t."offset"
                            AND p.index = t.index)
        RETURNING 1
    )
    SELECT timeline + count(*) INTO timeline FROM gone;
    DELETE FROM message_alias a USING unnest(accounts, gateway_ids) AS w (account, id)
    WHERE a.channel_account = w.account AND a.gateway_id = w.id;
    GET DIAGNOSTICS aliases = ROW_COUNT;
    -- The key of a suppressed person stays, with class and time, so that the person stays suppressed.
    UPDATE suppression s SET person = NULL, message_id = NULL
    WHERE s.key IN (SELECT p.key FROM suppression p WHERE p.person = customer
                    UNION SELECT p.key FROM suppression p WHERE p.message_id = ANY (ids));
    runs := erase_runs(ids, customer, customer_column);
    folds := erase_folds(array_remove(ids || gateway_ids || customer, NULL));
END
$$;
