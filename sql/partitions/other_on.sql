-- Makes a table the default partition. Variables: other.
ALTER TABLE message_inbox ATTACH PARTITION :"other" DEFAULT;
