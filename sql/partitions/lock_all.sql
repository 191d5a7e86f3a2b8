-- Before parent.sql. No variables; search_path = the schema.
LOCK TABLE message_inbox IN ACCESS EXCLUSIVE MODE;
