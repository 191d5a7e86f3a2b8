     -- Only in apply_unsubscribed, which is without subscribers/actions.sql though there are pipelines: for batches that hold no
     -- transition to which one of them subscribes. RD003 if that is wrong.
     , actions_unsubscribed($24::int2[], $25::int4) q
