CROSS JOIN LATERAL generate_series(($2::int4[])[e.n], ($2::int4[])[e.n + 1] - 1) g (i)
WHERE m.message_id IS NOT NULL OR message_is_erased(e.id) IS NOT TRUE;
