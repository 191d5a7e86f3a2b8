        -- Only where echoes are recognised by the row (45_doubtful.sql): the keys of receipts that cannot have come
        -- before. All of the message's receipts are such: their statuses are above that of the row, which only grows.
        -- Variable: counted, a column of the inbox.
        , :"counted" = CASE WHEN ($40::int2[])[e.n] > m.status
            THEN COALESCE(m.:"counted", '') || substr($41::bytea, ($9::int4[])[e.n] * 8 - 7, (($9::int4[])[e.n + 1] - ($9::int4[])[e.n]) * 8) ELSE m.:"counted" END
