-- Whether a message was deleted, so that a receipt of it is late. For ids that have no row; statements that ask about
-- very many parked receipts have the lookup in place, which is faster.
CREATE OR REPLACE FUNCTION message_is_retired(id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT message_is_erased(id) IS NOT NULL
$$;
