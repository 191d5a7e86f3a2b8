-- The rates that are known, by name: statuses and flags of the default ladder whose messages are added up, or
-- subtracted behind a '-'. `measure` is that of the numerator; a denominator has messages, and customers where the
-- numerator has. vendor '' is receiptd: its names carry the denominator. Rates of a vendor are those that the page
-- `source` publishes. `machines`: the vendor's opens and clicks are `with` those of machines or `without`; NULL:
-- there are none in it. `missing`: why these counters cannot give the vendor's figure.
CREATE OR REPLACE VIEW kpi_definition AS
SELECT v.vendor, row_number() OVER ()::int AS place, v.kpi,
       v.numerator::text[] AS numerator, v.denominator::text[] AS denominator,
       v.measure, v.machines, v.missing, s.source
FROM (VALUES
    ('', 'sent_per_targeted', '{SENT}', '{TARGETED}', 'messages', NULL, NULL),
    ('', 'skipped_per_targeted', '{SKIPPED}', '{TARGETED}', 'messages', NULL, NULL),
    ('', 'rejected_per_targeted', '{REJECTED}', '{TARGETED}', 'messages', NULL, NULL),
    ('', 'contacted_customers_per_targeted', '{SENT}', '{TARGETED}', 'customers', NULL, NULL),
    ('', 'delivered_customers_per_targeted', '{DELIVERED}', '{TARGETED}', 'customers', NULL, NULL),
    ('', 'delivered_customers_per_contacted', '{DELIVERED}', '{SENT}', 'customers', NULL, NULL),
    ('', 'delivered_per_sent', '{DELIVERED}', '{SENT}', 'messages', NULL, NULL),
    ('', 'hard_bounced_per_sent', '{BOUNCED_HARD,BOUNCED_HARD_EMAIL}', '{SENT}', 'messages', NULL, NULL),
    ('', 'soft_bounced_per_sent', '{BOUNCED_SOFT}', '{SENT}', 'messages', NULL, NULL),
    ('', 'blocked_per_sent', '{BLOCKED}', '{SENT}', 'messages', NULL, NULL),
    ('', 'failed_per_sent', '{FAILED}', '{SENT}', 'messages', NULL, NULL),
    ('', 'expired_per_sent', '{EXPIRED}', '{SENT}', 'messages', NULL, NULL),
    ('', 'pending_per_sent', '{SENT,DEFERRED}', '{SENT}', 'current', NULL, NULL),
    ('', 'opened_per_delivered', '{OPENED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'clicked_per_delivered', '{CLICKED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'clicked_per_opened', '{CLICKED}', '{OPENED}', 'messages', NULL, NULL),
    ('', 'machine_opened_per_delivered', '{MACHINE_OPEN}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'bot_clicked_per_delivered', '{BOT_CLICK}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'complained_per_delivered', '{COMPLAINED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'unsubscribed_per_delivered', '{UNSUBSCRIBED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'replied_per_delivered', '{REPLIED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('', 'total_opens_per_delivered', '{OPENED}', '{DELIVERED}', 'events', NULL, NULL),
    ('', 'total_clicks_per_delivered', '{CLICKED}', '{DELIVERED}', 'events', NULL, NULL),

    ('mailchimp', 'open_rate', '{OPENED}', '{DELIVERED}', 'messages', 'with', NULL),
    ('mailchimp', 'proxy_excluded_open_rate', '{OPENED}', '{DELIVERED}', 'messages', 'without', NULL),
    ('mailchimp', 'click_rate', '{CLICKED}', '{DELIVERED}', 'messages', 'with', NULL),

    -- Sends are all messages of the campaign but those that were left out. Deliveries are Sends without Bounces.
    ('braze', 'Deliveries %', '{TARGETED,-SKIPPED,-BOUNCED_HARD,-BOUNCED_HARD_EMAIL}',
     '{TARGETED,-SKIPPED}', 'messages', NULL, NULL),
    ('braze', 'Bounce Rate', '{BOUNCED_HARD,BOUNCED_HARD_EMAIL}', '{TARGETED,-SKIPPED}', 'messages', NULL, NULL),
    ('braze', 'Spam Rate', '{COMPLAINED}', '{TARGETED,-SKIPPED}', 'messages', NULL, NULL),
    ('braze', 'Unsubscribe Rate', '{UNSUBSCRIBED}',
     '{TARGETED,-SKIPPED,-BOUNCED_HARD,-BOUNCED_HARD_EMAIL}', 'messages', NULL, NULL),
    ('braze', 'Unique Open Rate', NULL, NULL, 'messages', NULL,
     'an open counts again after seven days, and a click is no open there'),
    ('braze', 'Click Rate', NULL, NULL, 'messages', NULL, 'a click counts again after seven days'),
    ('braze', 'Click-to-Open Rate', NULL, NULL, 'messages', NULL,
     'an open counts again after seven days, and a click is no open there'),
    ('braze', 'Total Open Rate', NULL, NULL, 'events', NULL,
     'needs each open once: events have repeated receipts, too'),

    -- Sent is Deliveries and Bounces, without messages that are still on their way. Accepted is DELIVERED: a later
    -- bounce takes it away.
    ('sparkpost', 'Accepted Rate', '{DELIVERED}',
     '{DELIVERED,BOUNCED_HARD,BOUNCED_HARD_EMAIL,BOUNCED_SOFT,BLOCKED,FAILED,EXPIRED}', 'messages', NULL, NULL),
    ('sparkpost', 'Rejection Rate', '{REJECTED}', '{IN_GTW}', 'messages', NULL, NULL),
    ('sparkpost', 'Hard Bounce Rate', '{BOUNCED_HARD,BOUNCED_HARD_EMAIL}',
     '{DELIVERED,BOUNCED_HARD,BOUNCED_HARD_EMAIL,BOUNCED_SOFT,BLOCKED,FAILED,EXPIRED}', 'messages', NULL, NULL),
    ('sparkpost', 'Soft Bounce Rate', NULL, NULL, 'messages', NULL, 'BOUNCED_SOFT has the undetermined bounces, too'),
    ('sparkpost', 'Undetermined Bounce Rate', NULL, NULL, 'messages', NULL, 'BOUNCED_SOFT has the soft bounces, too'),
    ('sparkpost', 'Block Bounce Rate', NULL, NULL, 'messages', NULL, 'BLOCKED has the admin bounces, too'),
    ('sparkpost', 'Admin Bounce Rate', NULL, NULL, 'messages', NULL, 'BLOCKED has the block bounces, too'),
    ('sparkpost', 'Delayed Rate', NULL, NULL, 'messages', NULL, 'a message leaves DEFERRED when it is delivered'),
    ('sparkpost', 'Open Rate', '{OPENED}', '{DELIVERED}', 'messages', 'without', NULL),
    ('sparkpost', 'Open Rate (with prefetched)', '{OPENED}', '{DELIVERED}', 'messages', 'with', NULL),
    ('sparkpost', 'Click-through Rate', '{CLICKED}', '{DELIVERED}', 'messages', 'with', NULL),
    ('sparkpost', 'Spam Complaint Rate', '{COMPLAINED}', '{DELIVERED}', 'messages', NULL, NULL),
    ('sparkpost', 'Unsubscribe Rate', NULL, NULL, 'events', NULL,
     'needs each use of the link once: events have repeated receipts, too'),

    -- Sent is what the provider was given.
    ('clevertap', 'Delivery rate', '{DELIVERED}', '{IN_GTW}', 'messages', NULL, NULL),
    ('clevertap', 'Viewed', '{OPENED}', '{IN_GTW}', 'messages', 'with', NULL),
    ('clevertap', 'Clicks', '{CLICKED}', '{IN_GTW}', 'messages', 'with', NULL),
    ('clevertap', 'CTR', '{CLICKED}', '{OPENED}', 'messages', 'with', NULL),
    ('clevertap', 'Converted users', NULL, NULL, 'messages', NULL, 'needs what users did afterwards'),

    ('capillary', 'Delivery Rate', '{DELIVERED}', '{SENT}', 'messages', NULL, NULL),
    ('capillary', 'Contacted Customer', '{SENT}', '{TARGETED}', 'customers', NULL, NULL),
    ('capillary', 'Hit Rate', NULL, NULL, 'messages', NULL, 'needs what customers bought')
) v (vendor, kpi, numerator, denominator, measure, machines, missing)
LEFT JOIN (VALUES
    ('mailchimp', 'https://mailchimp.com/developer/marketing/api/reports/'),
    ('braze', 'https://www.braze.com/docs/user_guide/data/report_metrics'),
    ('sparkpost', 'https://support.sparkpost.com/docs/reporting/enterprise-metrics-definitions'),
    ('clevertap', 'https://docs.clevertap.com/docs/email-campaign-stats-uniquestats'),
    ('capillary', 'https://support.capillarytech.com/en/support/solutions/articles/4000144510-view-campaign-reports')
) s (vendor, source) ON s.vendor = v.vendor;
