-- Before groups are repaired or erased, in the same transaction and an earlier statement than their snapshot: nobody folds meanwhile.
SELECT pg_advisory_xact_lock(hashtext('receiptd groups'), hashtext(current_schema()));
