-- Whether a run of that organisation names a message of another one. A run without an organisation, one whose message has no row yet, and
-- one of a pipeline whose organisation is another column of the inbox than org_id cross nothing.
CREATE OR REPLACE FUNCTION action_crosses(org_field text, org text, message text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT org_field = 'org_id' AND org <> '' AND EXISTS (SELECT FROM message_inbox m WHERE m.message_id = action_crosses.message
                                                          AND NULLIF(m.org_id, '') IS DISTINCT FROM action_crosses.org)
$$;
