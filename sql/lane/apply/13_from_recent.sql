    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, n)
    WHERE m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND m.:"recent_column" >= ALL (:'recent_since')
      AND (e.top > m.status OR (e.mask & ~m.flags) <> 0
