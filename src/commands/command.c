/* The table of commands: parsing, help, the manual page and completion come from it. A row has a
 * name, an optional argument, options and a function; command.h explains the members. A new command
 * is a row here (docs/contributing.md). Texts have their own line breaks, for a terminal; the
 * manual page fills them again, except where two blanks in a row mark columns. */
#include "receiptd/commands/command.h"
#include "receiptd/base/error.h"

/* Words separated by | are choices: completion offers them. */
#define FORMAT_OPTION                                                                              \
    {                                                                                              \
        "format", "table|json|csv", "how to print (default: table)"                                \
    }
#define OWNER_OPTION                                                                               \
    {                                                                                              \
        "dsn", "DSN", "the owner's connection string, or file:PATH; default: postgres.dsn"         \
    }

/* The order is that of --help: the two daemons, the schema, the configuration, then the
 * questions. */
static const struct command commands[] = {
    {
        .name = "run",
        .summary = "read receipts from Kafka and keep statuses and funnels in PostgreSQL",
        .doc = "Runs in the foreground until SIGTERM or SIGINT, which drain and leave the group "
               "within\n"
               "shutdown.deadline; a second one ends it at once. Logs go to stderr.",
        /* command_protect() finds this option by its name. */
        .options = {{"core-dumps", NULL, "let a crash leave a core file, which holds secrets"}},
        .run = command_run,
    },
    {
        .name = "intake",
        .summary = "take webhooks of gateways and send their receipts to Kafka",
        /* With --try the command is a test of an account and no process of its own:
         * intake_try.c. */
        .doc =
            "Runs in the foreground until SIGTERM or SIGINT, which answer what is there and end "
            "within\n"
            "shutdown.deadline. SIGHUP reads the TLS certificate again. Each request is "
            "answered after\n"
            "Kafka has acknowledged all that it held.\n\n"
            "With --try: reads one HTTP/1.1 request from the standard input, prints its events "
            "as JSON lines,\n"
            "or says on the standard error output why there are none. Exit code 65: something "
            "in it is not\n"
            "understood; 77: refused. The age of the signature is not checked. Connects to "
            "nothing.\n\n"
            "With --letters: prints the dead letters of an account as JSON lines, and ends: what\n"
            "could not be read, or whose status no table knows, with its bytes. They hold\n"
            "personal data unless intake.dead_letters says otherwise.",
        .options = {{"try", "ACCOUNT", "read a request for this entry of intake.accounts"},
                    {"letters", "ACCOUNT", "print the dead letters of this account, or of all"},
                    {"since", "TIME", "letters from then on (RFC 3339); else of the last hour"},
                    {"core-dumps", NULL, "let a crash leave a core file, which holds secrets"}},
        .run = command_intake,
    },
    {
        /* The words behind it are for who may ask; without one it is a process. */
        .name = "serve",
        .argument = "token|link",
        .choices = "token link",
        .more = 1,
        .summary = "answer readers: funnels and messages as JSON over HTTP, and a page",
        .doc = "Runs in the foreground until SIGTERM or SIGINT. It reads and changes nothing.\n\n"
               "  serve token add --name N [--scope S] [--org O] [--expires 30d]\n"
               "  serve token list\n"
               "  serve token revoke --name N\n"
               "  serve link CAMPAIGN [--expires 7d]\n\n"
               "A token is printed once; what is stored is its hash. Run these as the owner of the "
               "schema.\n"
               "A link shows one campaign's funnel to whoever has it (docs/serve.md).",
        .options = {{"name", "NAME", "whose token it is"},
                    {"scope", "SCOPES",
                     "read, support, operate, separated by commas (default: read)"},
                    {"org", "ORG", "the token sees this organisation only"},
                    {"expires", "TIME", "how long it lasts: a number and d, h or m"},
                    OWNER_OPTION,
                    {"core-dumps", NULL, "let a crash leave a core file, which holds secrets"}},
        .run = command_serve,
    },
    {
        /* Changes the database; --dry-run prints the same steps as SQL. */
        .name = "migrate",
        .summary = "create or update the schema, the inbox and the ladder in PostgreSQL",
        .doc =
            "Does what is missing in one transaction and says each step; a second run has "
            "nothing to do.\n"
            "A ladder that contradicts rows in use is refused with their count (exit code 78), and "
            "so is one\n"
            "that would stop running daemons, with their names, unless --force is given.\n\n"
            "With --role it also makes the role, unless it is there, and gives it the rights that "
            "the daemon\n"
            "needs and takes away all others in the schema; --platform-role likewise for who "
            "inserts messages,\n"
            "--intake-role for the intake, --serve-role for receiptd serve.\n"
            "Run it as the owner of the schema (--dsn), who is no superuser, and the daemon as the "
            "other role\n"
            "(docs/security.md).",
        .options = {{"dry-run", NULL, "list the steps that would run; write nothing"},
                    {"sql", NULL, "with --dry-run: a script for psql before the list"},
                    OWNER_OPTION,
                    {"role", "NAME", "the daemon's role: no more rights than it needs"},
                    {"platform-role", "NAME", "the platform's role: inserts messages, reads"},
                    {"intake-role", "NAME", "the intake's role: looks up aliases"},
                    {"serve-role", "NAME", "the role of receiptd serve: reads"},
                    {"as-superuser", NULL, "run although the session's role is a superuser"},
                    {"force", NULL, "run although running daemons end with 78 by the new ladder"}},
        .run = command_migrate,
    },
    {
        .name = "check-config",
        .summary = "say whether the configuration is valid",
        .doc =
            "Reads the file, checks every key and says where an error is. Connects to nothing.\n\n"
            "With --connect it also says, from the database, whether receipts can be exact in\n"
            "the inbox table, with the SQL that mends what is not, and prepares each statement\n"
            "that run would prepare. It changes nothing there.",
        .options = {{"connect", NULL, "check the inbox table in the database, too"},
                    {"print", NULL, "print the effective configuration, secrets redacted"},
                    {"reference", NULL,
                     "print the reference of all keys (Markdown); reads no file"},
                    {"example", NULL, "print a commented example (YAML); reads no file"}},
        .run = command_check_config,
    },
    {
        .name = "funnel",
        .argument = "CAMPAIGN",
        .summary = "show the funnel of a campaign, or of all",
        .doc =
            "messages: distinct messages that reached the status; events: receipts that named it;\n"
            "current: messages that stand in it now. --org shows campaigns whose messages are all "
            "of\n"
            "that organisation. --by shows a campaign's messages by the variant, channel or "
            "gateway\n"
            "that they were inserted with (counters.by). --kpis shows the rates as a vendor "
            "defines them\n"
            "(mailchimp, braze, sparkpost, clevertap, capillary), with the reason where there is "
            "no such\n"
            "figure; --kpis list shows the definitions. --by takes a column of counters.by,\n"
            "hour, minute, reason, duplicate, time_to_deliver or time_to_open. Exit code 66 if\n"
            "there is no such campaign.",
        .options = {{"org", "ORG", "only campaigns of this organisation"},
                    {"by", "WHAT",
                     "by variant, channel, gateway, hour, minute, reason ...: see above"},
                    {"kpis", "VENDOR",
                     "the rates of this vendor instead of receiptd's own, or list"},
                    FORMAT_OPTION},
        .run = command_funnel,
    },
    {
        /* Exit code 1 is for scripts: drift is an answer and no failure. */
        .name = "audit",
        .summary = "recount the funnels from the messages and compare",
        .doc =
            "Goes campaign by campaign in short snapshots, while the daemon works. Exit code 0: "
            "no drift,\n"
            "or all of it repaired and a recount clean; 1: drift. With --ids it recounts nothing, "
            "but\n"
            "reads all ids of an inbox in partitions whose key is not the id alone; 1: some are\n"
            "there twice.",
        .options = {{"campaign", "C", "only this campaign"},
                    {"repair", NULL, "add the difference, or book messages that went unbooked"},
                    {"ids", NULL, "find ids that stand in several rows of a partitioned inbox"},
                    FORMAT_OPTION},
        .run = command_audit,
    },
    {
        .name = "expire",
        .summary = "give messages whose receipts never came another status, such as UNKNOWN",
        .doc =
            "Does what inbox.expiry says, in short transactions beside the daemon: funnels, folds "
            "and\n"
            "actions see it like a receipt, and a late receipt still corrects it. It may be "
            "interrupted and\n"
            "run again. Run it as the owner of the schema (--dsn).",
        .options = {{"dry-run", NULL, "say how many messages would expire; change nothing"},
                    OWNER_OPTION},
        .run = command_expire,
    },
    {
        .name = "retire",
        .summary = "delete messages that are older than their retention; counters stay",
        .doc = "Deletes messages by inbox.retention and inbox.retention_overrides, and aliases by\n"
               "inbox.alias_retention, in short transactions beside the daemon. Partitions of the "
               "inbox go\n"
               "as a whole. What goes is booked, so that funnels and audits stay exact. It may be "
               "interrupted\n"
               "and run again. Run it as the owner of the schema (--dsn): the daemon's role may "
               "not delete\n"
               "messages.",
        .options = {{"dry-run", NULL, "say what would go; delete nothing"}, OWNER_OPTION},
        .run = command_retire,
    },
    {
        .name = "maintain",
        .summary = "what a timer runs: partitions, expire, retire, the recent set of a large inbox",
        .doc =
            "Makes the inbox's partitions of the next spans and drops those that are past their "
            "retention,\n"
            "where inbox.partitions is own; likewise those of receipts that dedup.window "
            "remembers.\n"
            "Expires and deletes messages, as `expire` and `retire` "
            "do, once a\n"
            "day. Then it makes the recent set of a large inbox, or makes it again where it has "
            "grown by a\n"
            "quarter: an index over the newest messages, in which batches look first "
            "(inbox.recent_rows).\n"
            "Instances follow within seconds; batches wait some 40 ms where partitions change.\n"
            "Run it every hour as the owner of the schema and of the table (--dsn). Two at once do "
            "no harm.\n"
            "What an interrupted run leaves, the next one mends.",
        .options = {OWNER_OPTION},
        .run = command_maintain,
    },
    {
        .name = "adopt",
        .summary = "partition an inbox that has messages, beside the daemon",
        .doc = "For inbox.partitions: own. The table becomes the partition of all ids up to seven "
               "spans from\n"
               "now; nothing is copied. Reads the table twice, then changes it in a short "
               "transaction. Refused\n"
               "where ids have another form, with an example. It may be interrupted and run again. "
               "Run it as\n"
               "the owner of the schema (--dsn).",
        .options = {{"dry-run", NULL, "say what would be done, or why not; change nothing"},
                    OWNER_OPTION},
        .run = command_adopt,
    },
    {
        .name = "erase",
        .summary = "erase a person: messages and all that is stored of them; counters stay",
        .doc =
            "Deletes the messages of a customer (inbox.columns.customer_id), or those that are "
            "named, with their\n"
            "parked receipts, dead letters, timeline, aliases, runs and actions, and what folds "
            "collected of\n"
            "them, in transactions of some hundred messages beside the daemon. Counters and "
            "audits stay exact.\n"
            "It may be interrupted: run it again. The table erasure records that it was done, "
            "without an id.\n"
            "Run it as the owner of the schema (--dsn). What it cannot reach: docs/retention.md.",
        .options = {{"customer", "ID", "whose messages go"},
                    {"message", "ID", "this message goes"},
                    {"messages-from", "FILE", "these go, one id in a line; -: standard input"},
                    {"reference", "TEXT",
                     "what the record names instead of a salted hash, such as a ticket"},
                    {"dry-run", NULL, "do it, say what went, and roll it back"},
                    OWNER_OPTION},
        .run = command_erase,
    },
    {
        /* One command lists and moves, since both choose by the same options. */
        .name = "dead-letters",
        .summary = "list what could not be applied, or give it another chance",
        .doc = "Lists the newest first. --redrive decodes the stored payloads again with the "
               "ladder of today\n"
               "and parks what is valid now, so that the daemon applies it; each receipt once, "
               "also when\n"
               "interrupted or run twice.",
        .options = {{"reason", "R", "only letters with this reason"},
                    {"limit", "N", "at most so many (default: list 100, redrive all)"},
                    {"payload", NULL, "list the payloads too; they hold personal data"},
                    {"redrive", NULL, "decode again and park what is valid"},
                    FORMAT_OPTION},
        .run = command_dead_letters,
    },
    {
        .name = "parked",
        .summary = "list receipts that wait for a message, and why they find none",
        .doc = "Lists the oldest first. --why tries each id in other case, without leading zeros, "
               "as hex and as\n"
               "decimal, without hyphens, a suffix, or what stands around it, and says which of "
               "these has a message\n"
               "or an alias, and what to configure (message_id_form). --ranges lists receipts of "
               "all messages\n"
               "to a person up to a time, while these are looked for. Reads only.",
        .options = {{"why", NULL, "try other forms of each id, and sum up"},
                    {"ranges", NULL, "receipts of all messages to a person up to a time"},
                    {"source", "NAME", "only of this account or gateway"},
                    {"topic", "TOPIC", "only of this topic"},
                    {"limit", "N", "at most so many (default: 100)"},
                    FORMAT_OPTION},
        .run = command_parked,
    },
    {
        .name = "gateways",
        .summary = "show how clean each gateway's receipts are",
        .doc = "Duplicates, receipts out of order, contradictions, unknown messages, the share of "
               "SENT with a final\n"
               "status, and how long receipts took, by the hour in which they were applied. Needs "
               "counters.gateways.\n"
               "deliver_p50_ms and deliver_p99_ms: from SENT to DELIVERED, of all messages that "
               "counters.times\n"
               "has counted, whatever the hours.",
        .options = {{"hours", "N", "of the last N hours (default: 24)"},
                    {"hourly", NULL, "hour by hour"},
                    FORMAT_OPTION},
        .run = command_gateways,
    },
    {
        .name = "explain",
        .argument = "MESSAGE",
        .summary = "show a message's row and what each known receipt did to it",
        .doc = "The row, the path of its status, receipts that wait for it, dead letters that name "
               "it, and, where\n"
               "timeline.retention is set, every receipt with what it did and why. Exit code 66 if "
               "nothing is known.",
        .options = {{"format", "table|json", "how to print (default: table)"}},
        .run = command_explain,
    },
    {
        .name = "folds",
        .argument = "[VERB [ARGUMENT]]",
        .choices = "list retry",
        .more = 1,
        .summary = "show and mend publications by webhook that were given up",
        .doc = "list                 what was given up, when and why\n"
               "retry ID|all         call their webhooks again, once the cause is mended; a second "
               "run\n"
               "                     changes nothing\n"
               "Exit code 66 if no such publication was given up.",
        .options = {{"rule", "NAME", "only of this rule"},
                    {"limit", "N", "at most so many (default: list 100, retry all)"},
                    {"dry-run", NULL, "retry: print what would be called again; write nothing"},
                    FORMAT_OPTION},
        .run = command_folds,
    },
    {
        /* Reads Kafka alone; no rule needs to be in effect. */
        .name = "fold-plan",
        .summary = "say what a rule of folds would publish with other windows",
        .doc =
            "Reads the history of a topic and prints for each window: publications, the share of "
            "events that\n"
            "were folded, the delay that it adds, the most publications within a second, and "
            "groups that\n"
            "opened again within the window. max_hold is the rule's. Joins no group, changes "
            "nothing.",
        .options = {{"rule", "NAME", "one of folds"},
                    {"topic", "TOPIC",
                     "of JSON events with the rule's fields (default: the rule's)"},
                    {"windows", "LIST", "durations (default: 1s,10s,1m,5m)"},
                    {"svg", "FILE", "draw ratio and delay too"},
                    {"limit", "N", "at most so many events"}},
        .run = command_fold_plan,
    },
    {
        /* The verbs are an argument, not options, so that completion can offer them (`choices`). */
        .name = "actions",
        .argument = "[VERB [ARGUMENT]]",
        .choices = "list show retry cancel import",
        .more = 1,
        .summary = "show, mend, end or begin what pipelines do",
        .doc = "list                 what is not over or dead, and why it does not run now\n"
               "show ACTION          with the subject and the last answer\n"
               "retry ACTION|all     another chance for dead ones\n"
               "cancel ACTION|all    end their runs; a call under way changes nothing any more\n"
               "import FILE          begin a run for each line of a CSV file (- reads the standard "
               "input); the\n"
               "                     first line names the columns: subject, org_id, campaign_id,\n"
               "                     message_id; others go along as data. Needs --pipeline.\n"
               "Exit code 66 if there is no such action, 65 if a line cannot be read.",
        .options = {{"pipeline", "NAME", "only of this pipeline; for import: which one begins"},
                    {"org", "ORG", "only of this organisation; for import: where none is named"},
                    {"status", "S",
                     "list only these: pending, held, running, done, dead, cancelled"},
                    {"limit", "N", "at most so many (default: list 100, others all)"},
                    FORMAT_OPTION},
        .run = command_actions,
    },
    {
        /* Asks Kafka and PostgreSQL itself: a daemon that stands still need not be asked. */
        .name = "positions",
        .argument = "[VERB [TOPIC PARTITION|all [OFFSET]]]",
        .choices = "show set skip-gap accept-database accept-cluster",
        .more = 3,
        .summary = "show where each partition stands, or move a position on purpose",
        .doc =
            "show                            position, log and owner of every partition\n"
            "set TOPIC PARTITION OFFSET      a number, beginning or end; or --at TIME instead\n"
            "skip-gap TOPIC PARTITION        go on behind records that retention has deleted\n"
            "                                PARTITION may be all: in one transaction, or none\n"
            "accept-database                 the database of postgres.dsn is the right one, "
            "though\n"
            "                                it is not the server that Kafka remembers\n"
            "accept-cluster                  the cluster of kafka.brokers is the right one, and\n"
            "                                the topics have the same records there\n"
            "Refused while a receiptd works on the partition. One that stands still before it\n"
            "does not count, and goes on within seconds. Each change is recorded in the table\n"
            "position_change. Exit code 75: refused for now; 66: there is no such partition.",
        .options = {{"reader", "READER",
                     "receipts, folds or actions (default: show all, change receipts)"},
                    {"at", "TIME", "set: to the first record that Kafka dates at TIME or later"},
                    {"replay", NULL, "set below what was applied: events count it twice"},
                    {"dry-run", NULL, "say what would be set; write nothing"},
                    FORMAT_OPTION},
        .run = command_positions,
    },
    {
        /* Verbs of the daemon are in operate/control.c; org and pipeline go to the database
         * (limits.c). */
        .name = "ctl",
        .argument = "VERB [ARGUMENT]…",
        .choices = "status lanes pause resume drain log-level resync reload org pipeline",
        .more = 2,
        .summary = "ask the running daemon, or tell it what to do",
        .doc = "status               what it does, and why it is not ready\n"
               "lanes                what each lane does\n"
               "pause, resume        take in nothing more; take in again\n"
               "drain                pause, and wait until nothing is queued\n"
               "log-level [COMPONENT] LEVEL\n                     until the next reload: error, "
               "warn, info or debug\n"
               "resync [LANE|all]    compare positions with the database now\n"
               "reload               read the configuration again, as SIGHUP does\n"
               "org VERB ORG         limits of an organisation, for all instances at once: list, "
               "set, clear,\n"
               "                     pause, resume; * stands for all organisations together\n"
               "pipeline VERB NAME   list, pause, resume\n"
               "Exit code 69 if no daemon answers at the socket, 75 if it cannot now, 78 if the\n"
               "configuration is refused.",
        .options = {{"format", "table|json", "how to print (default: table)"},
                    {"socket", "PATH", "instead of the configuration's control.socket"},
                    {"rate", "N", "org set: attempts per minute; 0: no limit"},
                    {"burst", "N", "org set: how many of them at once"},
                    {"concurrency", "N", "org set: actions that run at once; 0: no limit"},
                    {"weight", "N", "org set: its share of a turn, against 1"}},
        .run = command_ctl,
    },
    {
        /* Packages call it while they are built, so it needs neither a configuration nor a
         * server. */
        .name = "generate",
        .argument = "man|config-man|bash|zsh|sql",
        .choices = "man config-man bash zsh sql",
        .summary = "print a manual page, the completion for a shell, or the SQL",
        .doc =
            "man: receiptd(1); config-man: receiptd.yaml(5); bash: to be sourced; zsh: _receiptd; "
            "sql: every statement that the daemon prepares, for psql. Reads no file.",
        .run = command_generate,
    },
    {
        .name = "version",
        .summary = "print the versions of receiptd and of its libraries",
        .doc = "Connects to nothing.",
        .run = command_version,
    },
};

const struct command *command_table(size_t *count)
{
    *count = RCPT_COUNT_OF(commands);
    return commands;
}
