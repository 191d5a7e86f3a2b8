-- The next dead letters of letters_open.sql, of up to 64 KiB each. Returns place, payload and detail.
FETCH 200 FROM erased_letters;
