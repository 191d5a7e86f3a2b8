-- All dead letters, to be read by `receiptd erase` in its transaction: letters_fetch.sql hands them out. NO SCROLL:
-- once, in any order.
DECLARE erased_letters NO SCROLL CURSOR FOR SELECT d.ctid AS place, d.payload, d.detail FROM dead_letter d;
