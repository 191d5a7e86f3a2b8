-- After role.sql, where kafka.message_topics names topics: messages that are announced are inserted with any of the
-- platform's columns, and tombstones delete them. Variable: receiptd_role.
GRANT INSERT, DELETE ON message_inbox TO :"receiptd_role";
