-- Keeps roll-ups from folding groups while these are repaired or erased. It runs in the same transaction, in an
-- earlier statement than the snapshot.
SELECT FROM turn WHERE task = 'groups' FOR UPDATE;
