-- In place of 85_figures.sql with rules: figures do not tell reasons apart.
, figures AS NOT MATERIALIZED (
    SELECT k.old, k.new, k.gained, k.kind, sum(k.n) AS n
    FROM (SELECT k.old, k.new, k.gained, ($34::int4[])[k.kind] AS kind, k.n FROM kinds k) k GROUP BY k.old, k.new, k.gained, k.kind
),
others AS NOT MATERIALIZED (SELECT ($34::int4[])[x.kind] AS kind, x.fate FROM x)
