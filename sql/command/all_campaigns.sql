-- For the statements of one transaction that read all campaigns. They group and sort in memory; compiling them, or
-- starting workers, takes longer than it saves, and a worker would take a processor from the daemon.
SET LOCAL work_mem = '64MB';
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
