-- Whether a partition still belongs to the inbox, for its own trigger of that name: one that was detached keeps the
-- trigger. The parent's has no argument, and calls the same function.
CREATE OR REPLACE FUNCTION partition_is_counted(part oid, trigger_name name) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM pg_partition_ancestors(part) a
                   JOIN pg_trigger g ON g.tgrelid = a.relid AND g.tgname = trigger_name AND g.tgnargs = 0
                   JOIN pg_trigger own ON own.tgrelid = part AND own.tgname = trigger_name AND own.tgfoid = g.tgfoid)
$$;
