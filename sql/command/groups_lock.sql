-- Before groups are repaired or erased, in the same transaction and an earlier statement than their snapshot: nobody
-- folds meanwhile.
SELECT FROM turn WHERE task = 'groups' FOR UPDATE;
