-- Whether folds have anything to do that no rule of the configuration asks for: rules that are to be taken down, groups
-- that are open, publications and calls that were claimed. Returns remains (bool).
SELECT EXISTS (SELECT FROM fold_rule r WHERE r.removed_at IS NULL)
    OR EXISTS (SELECT FROM fold_event)
    OR EXISTS (SELECT FROM fold_group g WHERE g.due_at IS NOT NULL)
    OR EXISTS (SELECT FROM fold_outbox)
    OR EXISTS (SELECT FROM fold_call c WHERE c.failed_at IS NULL) AS remains;
