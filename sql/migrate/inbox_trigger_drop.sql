-- For inbox.targeted = none: whoever inserts counts TARGETED. Variables: inbox_schema, inbox_table.
DROP TRIGGER IF EXISTS receiptd_count_inserted ON :"inbox_schema".:"inbox_table";
