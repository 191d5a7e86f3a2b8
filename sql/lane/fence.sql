-- First statement of every transaction of a lane: moves its positions or raises RD001. As a statement of its own, it
-- gives the next ones a snapshot that is taken after the wait for the rows' locks. Parameters: $1 text[] topics, $2
-- int4[] partitions, $3 int4 lane, $4 int8[] expected, $5 int8[] next, $6 int8[] generations. Anchors: $7 int8[]
-- offsets (-1: leave the anchor as it is), $8 int8[] times (ms), $9 int8[] CRCs.
SELECT fence($1::text[], $2::int4[], $3::int4, $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[]),
       (extract(epoch FROM now()) * 1000000)::int8 AS now;
