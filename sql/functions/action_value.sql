-- What a run brought along under that name (data), else the column of its message's row. NULL: neither has a value, or
-- field is NULL. (In plpgsql, since the inbox does not exist yet when this is created.)
CREATE OR REPLACE FUNCTION action_value(data jsonb, message text, field text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF field IS NULL THEN
        RETURN NULL;
    ELSIF message IS NULL THEN
        RETURN NULLIF(data ->> field, '');
    END IF;
    RETURN COALESCE(NULLIF(data ->> field, ''), (
        SELECT to_jsonb(m.*) ->> action_value.field
        FROM (SELECT action_value.message COLLATE "default" AS id) w -- gives way to the collation of the inbox's key
        JOIN message_inbox m ON m.message_id = w.id LIMIT 1));
END
$$;
