-- First statement of a transaction in two flights. Each flight ends with a Sync, so a client that stops between them is
-- seen as idle in its transaction, which idle_in_transaction_session_timeout bounds.
BEGIN;
