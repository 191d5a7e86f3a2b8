-- First statement of a reader's transaction: its positions, or RD001. $1 text[] topics, $2 int4[] partitions, in order,
-- $3 int8[] expected, $4 int8[] next.
SELECT topic_fence('folds', 'fold_progress', $1::text[], $2::int4[], $3::int8[], $4::int8[]);
