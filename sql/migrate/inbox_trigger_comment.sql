-- The same for the trigger. Variables: inbox_schema, inbox_table, mapping.
COMMENT ON TRIGGER receiptd_count_inserted ON :"inbox_schema".:"inbox_table" IS :'mapping';
