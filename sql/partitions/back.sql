-- A detached partition returns to the inbox. Variables: part_schema, part, lower, upper.
ALTER TABLE :"part_schema".:"part" NO INHERIT inbox_detached;
ALTER TABLE message_inbox ATTACH PARTITION :"part_schema".:"part" FOR VALUES FROM (:'lower') TO (:'upper');
ALTER TABLE :"part_schema".:"part" DROP CONSTRAINT receiptd_bounds;
