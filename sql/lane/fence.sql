-- First statement of every transaction of a lane: moves its positions or raises RD001. A statement of its own, so that
-- what follows has a snapshot taken after the wait for the rows' locks. $1 text[] topics, $2 int4[] partitions, $3 int4
-- lane, $4 int8[] expected, $5 int8[] next, $6 int8[] generations, $7 int8[] anchor offsets (-1: leave the anchor as it
-- is), $8 int8[] anchor times (ms), $9 int8[] anchor CRCs.
SELECT fence($1::text[], $2::int4[], $3::int4, $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[]),
       (extract(epoch FROM now()) * 1000000)::int8 AS now;
