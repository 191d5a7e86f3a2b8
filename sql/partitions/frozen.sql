-- Notes that a partition is frozen (partitions/list). Variables: part_schema, part.
COMMENT ON TABLE :"part_schema".:"part" IS 'receiptd: frozen'
