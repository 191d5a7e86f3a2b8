-- Puts the triggers on the inbox that refuse an UPDATE of columns by which messages are counted (refuse_change()).
-- migrate runs this again where the file has changed.
--
-- columns: of the table: id, organisation, campaign, those of counters.by and counters.groups.
--
-- An UPDATE that sets none of them fires nothing, so batches pay for no call. It is an AFTER trigger, since a BEFORE
-- trigger locks each row once more. Partitions get it from their table, also later ones. Where one has another owner,
-- each that has the table's owner gets its own. For triggers of rows, an UPDATE that moves a row to another partition
-- deletes and inserts. So where partitions are bounded by such a column, a statement that sets it is refused as a
-- whole.
CREATE OR REPLACE FUNCTION install_change_trigger(in_schema text, in_table text, columns text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    base regclass := to_regclass(format('%I.%I', in_schema, in_table));
    counted text[] := ARRAY(SELECT DISTINCT c FROM unnest(columns) c ORDER BY 1);
    row_trigger text := (
        SELECT format('CREATE OR REPLACE TRIGGER receiptd_refuse_change AFTER UPDATE OF %s ON %%s '
                      'FOR EACH ROW WHEN (%s) EXECUTE FUNCTION refuse_change(%s)',
                      string_agg(replace(format('%I', c), '%', '%%'), ', '),
                      string_agg(replace(
                          format('OLD.%1$I::text COLLATE "C" IS DISTINCT FROM NEW.%1$I::text COLLATE "C"', c),
                          '%', '%%'), ' OR '),
                      string_agg(replace(quote_literal(c), '%', '%%'), ', '))
        FROM unnest(counted) c);
    target record;
BEGIN
    BEGIN
        EXECUTE format(row_trigger, base);
    EXCEPTION WHEN insufficient_privilege THEN
        FOR target IN SELECT t.name FROM inbox_trigger_targets(base) t
                      JOIN pg_class c ON c.oid = t.name::regclass AND c.relkind = 'r' LOOP
            EXECUTE format(row_trigger, target.name);
        END LOOP;
    END;
    FOR target IN
        SELECT p.oid::regclass::text AS name, string_agg(format('%I', c), ', ') AS columns,
               string_agg(quote_literal(c), ', ') AS literals
        FROM pg_class b
        CROSS JOIN LATERAL (SELECT b.oid AS relid
                            UNION SELECT t.relid FROM pg_partition_tree(b.oid) t WHERE NOT t.isleaf) t
        JOIN pg_class p ON p.oid = t.relid AND p.relowner = b.relowner AND p.relkind = 'p'
        JOIN unnest(counted) c
            ON pg_get_partkeydef(p.oid)
               ~ ('(^|[^[:alnum:]_])' || regexp_replace(c, '([^[:alnum:]_])', '\\\1', 'g') || '($|[^[:alnum:]_])')
        WHERE b.oid = base
        GROUP BY p.oid
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_refuse_move BEFORE UPDATE OF %s ON %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(%s)',
                       target.columns, target.name, target.literals);
    END LOOP;
END
$$;
