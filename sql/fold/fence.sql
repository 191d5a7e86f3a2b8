-- First statement of a publisher's transaction. $1 int4 shard, $2 int8 epoch.
SELECT fold_fence($1::int4, $2::int8);
