-- Last statement of a probing transaction: raises RD002, so that everything is rolled back.
SELECT probe_abort();
