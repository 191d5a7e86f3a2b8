-- Where echoes are recognised by the row: the column of its keys. Variables: receiptd_role, counted (a column of the
-- inbox).
GRANT UPDATE (:"counted") ON message_inbox TO :"receiptd_role";
