-- For figures (90_answer.sql), by kind: known messages, and receipts of the others.
, figures AS NOT MATERIALIZED (SELECT k.old, k.new, k.gained, k.kind, k.n::int8 AS n FROM kinds k),
others AS NOT MATERIALIZED (SELECT x.kind, x.fate FROM x)
