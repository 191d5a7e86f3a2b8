-- Takes a partition out of the inbox: from this transaction on its messages are detached. Variables: part_schema, part.
ALTER TABLE message_inbox DETACH PARTITION :"part_schema".:"part";
ALTER TABLE :"part_schema".:"part" INHERIT inbox_detached;
