-- Makes message_inbox an automatically updatable view over the platform's table. Our columns come first, then all
-- others under their own names, except those that are called like one of ours. Where the table is partitioned by
-- ranges of an id that is shown as text, message_key is the id itself: only a comparison with that leaves partitions
-- out of a plan. A migration runs this again where this file has changed, or where the table has gained columns.
--
-- in_schema, in_table: the base table; columns: ours, as src/commands/inbox/place.h has them. Columns that receiptd
-- fills and every inbox has are added where they are missing, without rewriting the table, and get a comment. The
-- others must be there. Columns of a feature are shown under their own names. Raises 42P01 (no such table), 42703 (no
-- such column), 42804 (a column of another type) and 23502 (status or flags may be NULL).
CREATE OR REPLACE FUNCTION map_inbox(in_schema text, in_table text, columns jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    base regclass := to_regclass(format('%I.%I', in_schema, in_table));
    is_owner boolean := (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = base);
    mapped record;
    present record; -- never named "found": that would hide FOUND
    list text := '';
    key text;
    ours text[] := '{}';
    texts text[] := '{}'; -- names there of those that are shown as text; the id's first
    grants text[];
    given text;
BEGIN
    IF base IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42P01',
            MESSAGE = format('inbox table %I.%I does not exist', in_schema, in_table),
            HINT = 'check inbox.table';
    END IF;
    FOR mapped IN
        SELECT c.ours, c.theirs, c.filler, c.definition, format_type(c.type::regtype, NULL) AS type
        FROM jsonb_to_recordset(columns) AS c (n int4, ours text, theirs text, type text,
                                               definition text, filler text, feature text, wanted boolean)
        WHERE c.wanted AND c.feature = '' ORDER BY c.n
    LOOP
        ours := ours || mapped.ours;
        texts := array_remove(texts || CASE WHEN mapped.filler = 'platform' THEN mapped.theirs END, NULL);
        SELECT format_type(a.atttypid, NULL) AS type, a.attnotnull, COALESCE(l.collisdeterministic, true) AS exact
        INTO present
        FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE a.attrelid = base AND a.attname = mapped.theirs AND a.attnum > 0 AND NOT a.attisdropped;
        IF NOT FOUND AND mapped.filler <> 'receiptd' THEN
            RAISE EXCEPTION USING ERRCODE = '42703',
                MESSAGE = format('inbox table %s has no column %I', base, mapped.theirs),
                HINT = format('check inbox.columns.%s', mapped.ours);
        ELSIF NOT FOUND THEN
            EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', base, mapped.theirs, mapped.definition);
        ELSIF mapped.filler <> 'platform' AND present.type <> mapped.type THEN
            RAISE EXCEPTION USING ERRCODE = '42804',
                MESSAGE = format('column %I of inbox table %s is of type %s, not %s', mapped.theirs, base, present.type,
                                 mapped.type),
                HINT = format(CASE WHEN mapped.filler <> 'receiptd' THEN 'check inbox.columns.%s'
                              ELSE 'let inbox.columns.%s name another column, it will be added' END, mapped.ours);
        ELSIF mapped.filler = 'receiptd' AND mapped.definition LIKE '% NOT NULL %' AND NOT present.attnotnull THEN
            -- A NULL is below and above nothing: such a row would never take a receipt.
            RAISE EXCEPTION USING ERRCODE = '23502',
                MESSAGE = format('column %I of inbox table %s may be NULL', mapped.theirs, base),
                HINT = 'make it NOT NULL DEFAULT 0';
        END IF;
        -- By this a later migration knows it from a column of the platform's (migrate/inbox_additions.sql).
        IF mapped.filler = 'receiptd' AND is_owner
           AND (SELECT col_description(base, a.attnum)
                FROM pg_attribute a
                WHERE a.attrelid = base AND a.attname = mapped.theirs) IS NULL THEN
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', base, mapped.theirs, 'receiptd: only receipts write it');
        END IF;
        -- Texts stay plain columns: their index is used as it is. Anything else is shown as text and needs an index on
        -- (column::text). Where a collation takes different texts for equal, the bytes decide.
        list := list || CASE WHEN list = '' THEN '' ELSE ', ' END
            || format(CASE WHEN mapped.filler <> 'platform' THEN 'message_inbox.%I AS %I'
                           WHEN NOT present.exact THEN 'message_inbox.%I::text COLLATE "C" AS %I'
                           WHEN present.type NOT IN ('text', 'character varying') THEN 'message_inbox.%I::text AS %I'
                           ELSE 'message_inbox.%I AS %I' END, mapped.theirs, mapped.ours);
    END LOOP;
    -- The view's casts run with the rights of the role that reads it.
    PERFORM check_inbox_columns(base, texts);
    SELECT format(', message_inbox.%I AS message_key', a.attname) INTO key
    FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND p.partattrs::text = a.attnum::text
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE p.partrelid = base AND p.partstrat = 'r' AND a.attname = texts[1]
      AND NOT (a.atttypid IN ('text'::regtype, 'varchar'::regtype) AND l.collisdeterministic);
    IF key <> '' THEN
        list := list || key;
        ours := ours || '{message_key}'::text[];
    END IF;
    -- With the alias the plans name message_inbox, as the check of plans expects it, under any name of the table.
    list := format('VIEW message_inbox AS SELECT %s%s FROM %s AS message_inbox', list, inbox_others(base, ours), base);
    EXECUTE 'CREATE OR REPLACE ' || list;
EXCEPTION WHEN invalid_table_definition THEN
    -- Columns go or change their types, as in another table: CREATE OR REPLACE cannot do that. The grants stay.
    SELECT array_agg(format('GRANT %s%s ON message_inbox TO %s%s', a.privilege_type, a.columns,
                            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
                            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END))
    INTO grants
    FROM (SELECT x.*, '' AS columns FROM pg_class c, aclexplode(c.relacl) x WHERE c.oid = 'message_inbox'::regclass
          UNION ALL
          SELECT x.*, format(' (%I)', t.attname) FROM pg_attribute t, aclexplode(t.attacl) x
          WHERE t.attrelid = 'message_inbox'::regclass
            AND (t.attname = ANY (ours)
                 OR EXISTS (SELECT FROM pg_attribute b
                            WHERE b.attrelid = base
                              AND b.attname = t.attname
                              AND b.attnum > 0
                              AND NOT b.attisdropped))) a;
    DROP VIEW message_inbox;
    EXECUTE 'CREATE ' || list;
    FOREACH given IN ARRAY COALESCE(grants, '{}') LOOP
        EXECUTE given;
    END LOOP;
END
$$;
