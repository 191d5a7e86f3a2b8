     -- Only in apply_unsubscribed, which is without subscribers/actions.sql though there are pipelines: for batches
     -- that hold no transition to which one of them subscribes. RD003 if that is wrong.
     , actions_unsubscribed($26::int2[], $27::int4) q
