-- Instead of the second flight, where the first has failed or is not to be written.
ROLLBACK;
