-- The time zone of a run's person: the field of what an import brought, or else of the message's row in the inbox. The
-- fallback where neither has one that PostgreSQL knows, or the field is NULL. The message's collation gives way to that
-- of the inbox's key, as in action_crosses().
CREATE OR REPLACE FUNCTION action_zone(data jsonb, message text, field text, fallback text)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    zone text;
BEGIN
    IF field IS NULL THEN
        RETURN fallback;
    END IF;
    zone := COALESCE(data ->> field, (
        SELECT to_jsonb(m.*) ->> field
        FROM (SELECT action_zone.message COLLATE "default" AS id) w JOIN message_inbox m ON m.message_id = w.id
        LIMIT 1));
    PERFORM now() AT TIME ZONE zone;
    RETURN COALESCE(zone, fallback);
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN fallback;
END
$$;
