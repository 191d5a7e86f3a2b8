-- Returns those of these messages that are there, in the order in which all transactions lock, and locks them. No
-- transaction can delete them until this one has ended. Then count_deleted() finds the parts that this one has noted
-- (message_part), and the two never wait for each other in a circle. Batches change the messages meanwhile: the lock
-- is that of a foreign key.
CREATE OR REPLACE FUNCTION messages_held(ids text[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT m.message_id FROM message_inbox m WHERE m.message_id = ANY (ids)
    ORDER BY m.message_id COLLATE "C" FOR KEY SHARE
$$;
