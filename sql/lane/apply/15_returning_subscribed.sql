              -- Only where folds or pipelines subscribe to transitions: the columns that they alone read.
              , e.at, COALESCE(m.org_id, '') AS org, record_link($19::bytea, ($12::int4[])[($9::int4[])[e.n]]) AS link
