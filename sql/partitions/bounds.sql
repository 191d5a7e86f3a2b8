-- Notes the bounds that a table is to get as a partition; its rows are not checked yet, new ones are. Variables: other (its name), lower, upper.
ALTER TABLE :"other" ADD CONSTRAINT receiptd_bounds CHECK (message_id >= :'lower' AND message_id < :'upper') NOT VALID;
