-- Nobody uses the inbox until the transaction ends. Only the parent is locked: who uses a partition through it holds
-- this lock, too.
LOCK TABLE ONLY message_inbox IN ACCESS EXCLUSIVE MODE;
