-- For inbox.targeted = none: the platform counts TARGETED itself. Variables: inbox_schema, inbox_table.
DROP TRIGGER IF EXISTS receiptd_count_inserted ON :"inbox_schema".:"inbox_table";
DROP TRIGGER IF EXISTS receiptd_count_deleted ON :"inbox_schema".:"inbox_table";
DROP TRIGGER IF EXISTS receiptd_count_truncated ON :"inbox_schema".:"inbox_table";
DROP TRIGGER IF EXISTS receiptd_refuse_change ON :"inbox_schema".:"inbox_table";
DROP TRIGGER IF EXISTS receiptd_refuse_move ON :"inbox_schema".:"inbox_table";
