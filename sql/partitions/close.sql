-- Keeps all others from the inbox until the transaction ends. It locks only the parent: a session that uses a
-- partition through it holds this lock, too.
LOCK TABLE ONLY message_inbox IN ACCESS EXCLUSIVE MODE;
