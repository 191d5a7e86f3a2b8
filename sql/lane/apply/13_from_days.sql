    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[], $42::int4[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, day, n)
    WHERE m.message_id = e.id AND (e.org IS NULL OR NULLIF(m.org_id, '') = e.org)
      AND m.created_at >= to_timestamp(e.day * 86400.0) AND m.created_at < to_timestamp((e.day + 1) * 86400.0)
      AND (e.top > m.status OR (e.mask & ~m.flags) <> 0
