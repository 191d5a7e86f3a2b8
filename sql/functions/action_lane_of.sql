-- The shard of a subject: actions of one subject are claimed by one owner.
CREATE OR REPLACE FUNCTION action_lane_of(hash int8) RETURNS int2 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (hash & 15)::int2
$$;
