-- Notes the bounds of a partition that is detached, for the case that it has to go back; nothing is checked. Variables:
-- part_schema, part, lower ('' where it has none), upper.
ALTER TABLE :"part_schema".:"part" ADD CONSTRAINT receiptd_bounds CHECK (message_id >= :'lower'
                                                                         AND message_id < :'upper') NOT VALID;
