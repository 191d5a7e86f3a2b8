-- With counters.times: the columns of first times. Variable: receiptd_role.
GRANT UPDATE (first_sent_at, first_delivered_at, first_opened_at, first_clicked_at, first_gateway, prev_times) ON message_inbox TO :"receiptd_role";
