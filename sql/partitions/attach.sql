-- Variables: part, lower, upper.
ALTER TABLE message_inbox ATTACH PARTITION :"part" FOR VALUES FROM (:'lower') TO (:'upper');
