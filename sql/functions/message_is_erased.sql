-- Whether a message that was deleted was erased with all that was stored of it; NULL: it was not deleted. For ids that have no row.
CREATE OR REPLACE FUNCTION message_is_erased(id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (SELECT bool_or(t.erased) FROM retired_message t WHERE t.hash = hashtextextended(id COLLATE "C", 0))
$$;
