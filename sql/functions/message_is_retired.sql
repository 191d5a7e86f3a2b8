-- Whether a message was deleted, or is in a partition that leaves the inbox, so that a receipt of it is late. For ids that have no row;
-- statements that ask about very many parked receipts have the lookup in place, which is faster.
CREATE OR REPLACE FUNCTION message_is_retired(id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM retired_message t WHERE t.hash = hashtextextended(id COLLATE "C", 0))
        OR EXISTS (SELECT FROM inbox_detached d WHERE d.message_id = id COLLATE "C")
$$;
