-- Ends letters_open.sql.
CLOSE erased_letters;
