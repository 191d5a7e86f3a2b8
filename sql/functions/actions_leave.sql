-- Gives up the shards of an instance that ends, which would else keep them until its lease runs out. me: the instance.
CREATE OR REPLACE FUNCTION actions_leave(me text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM action_instance WHERE instance = me;
    UPDATE action_lane SET owner = NULL WHERE owner = me;
$$;
