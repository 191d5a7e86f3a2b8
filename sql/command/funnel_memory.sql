-- For the statements of one `receiptd funnel`: the counts of all campaigns are grouped and sorted in memory.
SET LOCAL work_mem = '64MB';
