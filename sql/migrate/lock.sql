-- One migration at a time; $1 text schema. Returns locked: false if another session migrates ($2 bool: then wait for it).
SELECT CASE WHEN $2::bool THEN pg_advisory_xact_lock(hashtextextended('receiptd migrate ' || $1::text, 0)) IS NOT NULL
            ELSE pg_try_advisory_xact_lock(hashtextextended('receiptd migrate ' || $1::text, 0)) END AS locked;
