-- Whether a message that was deleted was erased with all that was stored of it; NULL: it was not deleted. A partition
-- that leaves the inbox takes its messages along: they are deleted. For ids that have no row.
CREATE OR REPLACE FUNCTION message_is_erased(id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT COALESCE((SELECT bool_or(t.erased)
                     FROM retired_message t
                     WHERE t.hash = hashtextextended(id COLLATE "C", 0)),
                    (SELECT false FROM inbox_detached d WHERE d.message_id = id COLLATE "C" LIMIT 1))
$$;
