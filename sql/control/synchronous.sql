-- First statement of a transaction that creates rows of positions: rows created asynchronously could vanish in a crash
-- and stop a healthy instance. Ends with the transaction. (SET LOCAL would do the same, with a WARNING each time.)
SELECT set_config('synchronous_commit', 'on', true);
