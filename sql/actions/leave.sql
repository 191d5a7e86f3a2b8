-- Gives up the shards of an instance: $1 text instance. Others may own them at once.
SELECT actions_leave($1::text);
