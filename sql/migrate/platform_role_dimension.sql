-- After platform_role.sql: the platform writes a dimension's column of our own inbox with the message. Variables:
-- platform_role, column.
GRANT INSERT (:"column") ON message_inbox TO :"platform_role";
