-- The statuses through which a message with this status has gone.
CREATE OR REPLACE FUNCTION action_path(status int2) RETURNS int2[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(p.ancestor) FROM status_path p WHERE p.code = status
$$;
