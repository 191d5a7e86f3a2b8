-- Whether a run of that organisation names a message of another one. A run without an organisation, one whose message
-- has no row yet, and one of a pipeline whose organisation is another column of the inbox than org_id cross nothing.
-- The message's collation gives way to that of the inbox's key, whatever the other arguments bring along: so the key's
-- index is used.
CREATE OR REPLACE FUNCTION action_crosses(org_field text, org text, message text)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT org_field = 'org_id' AND org <> '' AND EXISTS (
        SELECT FROM (SELECT action_crosses.message COLLATE "default" AS id) w
        JOIN message_inbox m ON m.message_id = w.id
        WHERE NULLIF(m.org_id, '') IS DISTINCT FROM action_crosses.org)
$$;
