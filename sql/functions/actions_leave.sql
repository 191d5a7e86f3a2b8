-- An instance that ends gives its shards away at once, instead of at the end of its lease.
CREATE OR REPLACE FUNCTION actions_leave(me text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM action_instance WHERE instance = me;
    UPDATE action_lane SET owner = NULL WHERE owner = me;
$$;
