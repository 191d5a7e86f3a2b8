-- Those of these messages that are there, in the order in which all transactions lock. None of them can be deleted
-- until this transaction has ended: count_deleted() then finds the parts that it has noted (message_part), and the two
-- never wait for each other in a circle. Batches change the messages meanwhile: the lock is that of a foreign key.
CREATE OR REPLACE FUNCTION messages_held(ids text[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT m.message_id FROM message_inbox m WHERE m.message_id = ANY (ids)
    ORDER BY m.message_id COLLATE "C" FOR KEY SHARE
$$;
