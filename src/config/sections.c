/* The sections of the configuration: pages and `check-config --print` follow their order. A new
 * section needs a row here. */
#include "table.h"

#include "receiptd/base/error.h"

/* The order of sections on the pages. "" holds the keys without a section. */
static const struct rcpt_config_section sections[] = {
    {"kafka", "Where the receipts come from."},
    {"postgres", "Where statuses and counters go."},
    {"", "How receipts are spread, and what happens to those of messages without a row."},
    {"batch", "Whatever arrived while the last transaction ran is the next batch, up to these "
              "limits."},
    {"memory", "Back-pressure begins where the budget ends."},
    {"progress", "How positions are kept moving and compared with the database."},
    {"parked", "Receipts whose message row does not exist yet."},
    {"counters", "Every transaction appends what it counted; the roll-up adds it to the totals."},
    {"dedup", "Receipts that come again count as duplicates and not as events."},
    {"inbox", "The table of messages: receiptd's own, or one that exists."},
    {"machine",
     "What opens and clicks count as that do not come from people: receipts with the flag "
     "MACHINE_OPEN or BOT_CLICK. docs/rules.md."},
    {"intake",
     "Webhooks of gateways come in here and go to Kafka: `receiptd intake`, or beside `run` "
     "where it is enabled."},
    {"serve",
     "What is known about campaigns and messages, for people and programs: `receiptd serve`, "
     "or beside `run` where it is enabled."},
    {"shutdown", "How the process ends."},
    {"log", "Log lines go to the standard error output."},
    {"http", "Metrics, health and status for machines."},
    {"control", "The socket that `receiptd ctl` talks to."},
    {"tracing", "Spans of transactions and of webhooks go to a collector that speaks OTLP."},
    {"timeline", "What every receipt did, kept for `receiptd explain`."},
    {"dead_letters", "Receipts that could not be applied: `receiptd dead-letters`."},
    {"actions", "How the actions of `pipelines` are carried out; docs/actions.md."},
    {"ladder", "The tree of statuses. A ladder in the file replaces the default one as a whole, "
               "flags and overrides included. A reload takes over what is added, after "
               "`receiptd migrate` has brought it into the database, and refuses other changes."},
};

const struct rcpt_config_section *rcpt_config_sections(size_t *count)
{
    *count = RCPT_COUNT_OF(sections);
    return sections;
}
