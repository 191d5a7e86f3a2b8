/* The table of commands: parsing, help, the manual page and completion come from it. A row has a
 * name, an optional argument, options and a function; command.h explains the members. A new command
 * is a row here (docs/contributing.md). Texts have line breaks for a terminal. The manual page
 * fills their lines again, except where two blanks in a row mark columns. */
#include "command.h"

/* Words separated by | are choices: completion offers them. */
#define FORMAT_OPTION                                                                              \
    {                                                                                              \
        "format", "table|json|csv", "how to print (default: table)"                                \
    }
#define OWNER_OPTION                                                                               \
    {                                                                                              \
        "dsn", "DSN", "the owner's connection string, or file:PATH; default: postgres.dsn"         \
    }

/* --help lists them in this order: processes, schema, configuration, then commands that show or
 * change data. */
static const struct command commands[] = {
    {
        .name = "run",
        .summary = "read receipts from Kafka and keep statuses and funnels in PostgreSQL",
        .doc =
            "Runs in the foreground until SIGTERM or SIGINT. The first one drains, and leaves\n"
            "the group within shutdown.deadline; a second one ends the process at once. Logs go\n"
            "to stderr.\n\n"
            "--try reads the value of one record of a topic from the standard input. It prints\n"
            "its receipts as JSON lines, and says on stderr what becomes a dead letter, and why\n"
            "(exit code 65). Connects to nothing.",
        /* command_protect() finds this option by its name. */
        .options = {{"try", "TOPIC", "read a record for this entry of kafka.topics"},
                    {"header", "NAME:VALUE", "headers of that record, separated by semicolons"},
                    {"core-dumps", NULL, "let a crash leave a core file, which holds secrets"}},
        .run = command_run,
    },
    {
        .name = "intake",
        .summary = "take webhooks of gateways and send their receipts to Kafka",
        /* --try tests an account and starts no process: intake_try.c. */
        .doc = "Runs in the foreground until SIGTERM or SIGINT: open requests are then answered\n"
               "within shutdown.deadline. SIGHUP reads the configuration and the TLS certificate\n"
               "again. A request is answered after Kafka has acknowledged all of its receipts.\n\n"
               "--try reads one HTTP/1.1 request from the standard input. It prints the request's\n"
               "events as JSON lines, or says on stderr why there are none. Exit code 65: a part\n"
               "of the request was not understood; 77: refused. The age of the signature is not\n"
               "checked. Connects to nothing.\n\n"
               "--letters prints the dead letters of an account as JSON lines, with their bytes,\n"
               "and ends. These are receipts that could not be read, or whose status is in no\n"
               "table. They hold personal data unless intake.dead_letters says otherwise.",
        .options = {{"try", "ACCOUNT", "read a request for this entry of intake.accounts"},
                    {"letters", "ACCOUNT", "print the dead letters of this account, or of all"},
                    {"since", "TIME", "letters from then on (RFC 3339); else of the last hour"},
                    {"core-dumps", NULL, "let a crash leave a core file, which holds secrets"}},
        .run = command_intake,
    },
    {
        /* An argument manages tokens and links. The process runs if there is none. */
        .name = "serve",
        .argument = "token|link",
        .choices = "token link",
        .more = 1,
        .summary = "answer readers: funnels and messages as JSON over HTTP, and a page",
        .doc = "Runs in the foreground until SIGTERM or SIGINT. The only request that writes is a\n"
               "redrive of dead letters.\n\n"
               "  serve token add --name N [--scope S] [--org O] [--expires 30d]\n"
               "  serve token list\n"
               "  serve token revoke --name N\n"
               "  serve link CAMPAIGN [--expires 7d]\n\n"
               "A token is printed once; only its hash is stored. Run these commands as the owner\n"
               "of the schema. A link shows one campaign's funnel to everyone who has it\n"
               "(docs/serve.md).",
        .options = {{"name", "NAME", "whose token it is"},
                    {"scope", "SCOPES",
                     "of read, support, operate, suppressions, with commas (default: read)"},
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
        .doc = "Makes what is missing in one transaction and prints each step; a second run has\n"
               "nothing to do. A ladder that contradicts rows in use is refused with their count\n"
               "(exit code 78). A ladder that would stop running daemons is refused with their\n"
               "names, unless --force is given.\n\n"
               "--role makes the daemon's role if it is missing, gives it the rights that it\n"
               "needs, and takes away all others in the schema. --platform-role does the same for\n"
               "the role that inserts messages, --intake-role for the intake, --serve-role for\n"
               "receiptd serve. Run migrate as the owner of the schema (--dsn), who is no\n"
               "superuser, and the daemon as its own role (docs/security.md).",
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
        .summary = "check the configuration, and the database with --connect",
        .doc =
            "Reads the file, checks every key and says where an error is. Connects to nothing.\n\n"
            "--connect also checks in the database whether receipts can be exact in the inbox\n"
            "table, and prints the SQL that mends it. Then it prepares each statement of run.\n"
            "It changes nothing there.",
        .options = {{"connect", NULL, "also check the inbox table in the database"},
                    {"print", NULL, "print the effective configuration, secrets redacted"},
                    {"reference", NULL,
                     "print the reference of all keys (Markdown); reads no file"},
                    {"example", NULL, "print a commented example (YAML); reads no file"},
                    {"schema", NULL, "print the JSON Schema of the file; reads no file"}},
        .run = command_check_config,
    },
    {
        .name = "funnel",
        .argument = "CAMPAIGN",
        .summary = "show the funnel of a campaign, or of all",
        .doc =
            "messages: distinct messages that reached the status; events: receipts that named\n"
            "it; current: messages that have it now. --org shows only campaigns all of whose\n"
            "messages belong to that organisation. --by shows a campaign's messages by a column\n"
            "of counters.by, such as the variant, channel or gateway that they were inserted\n"
            "with; or by hour, minute, reason, duplicate, time_to_deliver or time_to_open.\n"
            "--kpis shows the rates as a vendor defines them (mailchimp, braze, sparkpost,\n"
            "clevertap, capillary), with the reason where there is no such figure; --kpis list\n"
            "shows the definitions. Exit code 66 if there is no such campaign.",
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
        .doc = "Recounts campaign by campaign in short snapshots, while the daemon works. Exit\n"
               "code 0: no drift, or all drift was repaired and a recount is clean; 1: drift.\n"
               "--ids recounts nothing: it reads all ids of an inbox in partitions whose key is\n"
               "not the id alone. Exit code 1 then means that some ids are there twice.",
        .options = {{"campaign", "C", "only this campaign"},
                    {"repair", NULL, "add the difference, or book messages that went unbooked"},
                    {"ids", NULL, "find ids that stand in several rows of a partitioned inbox"},
                    FORMAT_OPTION},
        .run = command_audit,
    },
    {
        .name = "expire",
        .summary = "give messages without a final receipt another status, such as UNKNOWN",
        .doc = "Applies inbox.expiry in short transactions beside the daemon. Funnels, folds and\n"
               "actions see it like a receipt, and a late receipt still corrects it. It may be\n"
               "interrupted and run again. Run it as the owner of the schema (--dsn).",
        .options = {{"dry-run", NULL, "say how many messages would expire; change nothing"},
                    OWNER_OPTION},
        .run = command_expire,
    },
    {
        .name = "retire",
        .summary = "delete messages that are older than their retention; counters stay",
        .doc =
            "Deletes messages by inbox.retention and inbox.retention_overrides, and aliases by\n"
            "inbox.alias_retention, in short transactions beside the daemon. Partitions of the\n"
            "inbox are dropped as a whole. Deletions are booked, so that funnels and audits\n"
            "stay exact. It may be interrupted and run again. Run it as the owner of the schema\n"
            "(--dsn): the daemon's role may not delete messages.",
        .options = {{"dry-run", NULL, "say what would go; delete nothing"}, OWNER_OPTION},
        .run = command_retire,
    },
    {
        .name = "maintain",
        .summary = "what a timer runs: partitions, expire, retire, the recent set of a large inbox",
        .doc =
            "Makes the inbox's partitions of the next spans and drops those past their\n"
            "retention, if inbox.partitions is own. Makes and drops partitions of the receipts\n"
            "that dedup.window remembers. Expires and deletes messages once a day, as expire\n"
            "and retire do. Makes the recent set of a large inbox, an index over the newest\n"
            "messages in which batches look first (inbox.recent_rows), and makes it again when\n"
            "it has grown by a quarter. Instances follow within seconds. Batches wait some 40\n"
            "ms while partitions change.\n\n"
            "Run it every hour as the owner of the schema and of the table (--dsn). Two runs at\n"
            "once do no harm. The next run finishes what an interrupted one has left.",
        .options = {OWNER_OPTION},
        .run = command_maintain,
    },
    {
        .name = "adopt",
        .summary = "partition an inbox that has messages, beside the daemon",
        .doc =
            "For inbox.partitions: own. The table becomes the partition of all ids up to seven\n"
            "spans from now; nothing is copied. The command reads the table twice, then changes\n"
            "it in a short transaction. If ids have another form, it refuses and prints an\n"
            "example. It may be interrupted and run again. Run it as the owner of the schema\n"
            "(--dsn).",
        .options = {{"dry-run", NULL, "say what would be done, or why not; change nothing"},
                    OWNER_OPTION},
        .run = command_adopt,
    },
    {
        .name = "erase",
        .summary = "erase a person: messages and all that is stored of them; counters stay",
        .doc =
            "Deletes the messages of a customer (inbox.columns.customer_id), or the named ones,\n"
            "with their parked receipts, dead letters, timeline, aliases, runs and actions, and\n"
            "what folds collected of them. Each transaction takes some hundred messages, beside\n"
            "the daemon. Counters and audits stay exact. If it is interrupted, run it again.\n"
            "The table erasure records the erasure without an id. Run it as the owner of the\n"
            "schema (--dsn). docs/retention.md says what it cannot reach.",
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
        .summary = "list receipts that could not be applied, or apply them again",
        .doc = "Lists the newest first. --redrive decodes the stored payloads again with the\n"
               "present ladder and parks the receipts that are valid now, so that the daemon\n"
               "applies them. Each receipt is parked once, even if the command is interrupted or\n"
               "run twice.",
        .options = {{"reason", "R", "only letters with this reason"},
                    {"limit", "N", "at most N (default: list 100, redrive all)"},
                    {"payload", NULL, "list the payloads too; they hold personal data"},
                    {"redrive", NULL, "decode again and park what is valid"},
                    FORMAT_OPTION},
        .run = command_dead_letters,
    },
    {
        .name = "parked",
        .summary = "list receipts that wait for a message, and why they find none",
        .doc =
            "Lists the oldest first. --why tries other forms of each id: in other case, without\n"
            "leading zeros, as hex and as decimal, without hyphens, without a suffix or the\n"
            "characters around it. It says which form has a message or an alias, and what to\n"
            "configure (message_id_form). --ranges lists receipts of all messages to a person\n"
            "up to a time, while these messages are looked for. Reads only.",
        .options = {{"why", NULL, "try other forms of each id, and sum up"},
                    {"ranges", NULL, "receipts of all messages to a person up to a time"},
                    {"source", "NAME", "only of this account or gateway"},
                    {"topic", "TOPIC", "only of this topic"},
                    {"limit", "N", "at most N (default: 100)"},
                    FORMAT_OPTION},
        .run = command_parked,
    },
    {
        .name = "gateways",
        .summary = "show how clean each gateway's receipts are",
        .doc = "Shows duplicates, receipts out of order, contradictions, unknown messages, the\n"
               "share of SENT with a final status, and how long receipts took, by the hour in\n"
               "which they were applied. Needs counters.gateways. deliver_p50_ms and\n"
               "deliver_p99_ms are times from SENT to DELIVERED, of all messages that\n"
               "counters.times has counted, in any hour.",
        .options = {{"hours", "N", "of the last N hours (default: 24)"},
                    {"hourly", NULL, "hour by hour"},
                    FORMAT_OPTION},
        .run = command_gateways,
    },
    {
        .name = "explain",
        .argument = "MESSAGE",
        .summary = "show a message's row and what each known receipt did to it",
        .doc =
            "Shows the row, the path of its status, receipts that wait for it, and dead letters\n"
            "that name it. With timeline.retention it also shows every receipt, what it did and\n"
            "why. Exit code 66 if nothing is known.",
        .options = {{"format", "table|json", "how to print (default: table)"}},
        .run = command_explain,
    },
    {
        .name = "folds",
        .argument = "[VERB [ARGUMENT]]",
        .choices = "list retry",
        .more = 1,
        .summary = "list publications by webhook that were given up, or call them again",
        .doc = "list                 what was given up, when and why\n"
               "retry ID|all         call their webhooks again, once the cause is mended; a second "
               "run\n"
               "                     changes nothing\n"
               "Exit code 66 if no such publication was given up.",
        .options = {{"rule", "NAME", "only of this rule"},
                    {"limit", "N", "at most N (default: list 100, retry all)"},
                    {"dry-run", NULL, "retry: print what would be called again; write nothing"},
                    FORMAT_OPTION},
        .run = command_folds,
    },
    {
        /* The command reads Kafka alone, so the rule need not be in effect. */
        .name = "fold-plan",
        .summary = "compute what a rule of folds would publish with other windows",
        .doc =
            "Reads the history of a topic and prints for each window: publications, the share\n"
            "of events that were folded, the delay that it adds, the most publications within a\n"
            "second, and groups that opened again within the window. max_hold is the rule's.\n"
            "Joins no group and changes nothing.",
        .options = {{"rule", "NAME", "one of folds"},
                    {"topic", "TOPIC",
                     "of JSON events with the rule's fields (default: the rule's)"},
                    {"windows", "LIST", "durations (default: 1s,10s,1m,5m)"},
                    {"svg", "FILE", "draw ratio and delay too"},
                    {"limit", "N", "at most N events"}},
        .run = command_fold_plan,
    },
    {
        .name = "stream",
        .summary = "fill the status stream with the messages that are there",
        .doc = "--backfill writes a record of each row of the inbox into the stream, in the order\n"
               "of the ids and page by page, while receipts flow. Such a record never comes after\n"
               "a newer one of its message. The command waits while a daemon has 50 rows of the\n"
               "stream to publish. It may be interrupted: it prints every ten seconds how to go\n"
               "on (docs/stream.md).",
        .options = {{"backfill", NULL, "write the present rows"},
                    {"from", "ID", "only messages behind this id, which an earlier run printed"},
                    OWNER_OPTION},
        .run = command_stream,
    },
    {
        /* The verbs are an argument, not options, so that completion can offer them (`choices`). */
        .name = "actions",
        .argument = "[VERB [ARGUMENT]]",
        .choices = "list show retry cancel import",
        .more = 1,
        .summary = "list, show, retry, cancel or import what pipelines do",
        .doc = "list                 pending, held, running and dead actions, and why they do not "
               "run\n"
               "show ACTION          with the subject and the last answer\n"
               "retry ACTION|all     another chance for dead ones\n"
               "cancel ACTION|all    end their runs; the answer to a call under way is ignored\n"
               "import FILE          begin a run for each line of a CSV file (- reads the standard "
               "input); the\n"
               "                     first line names the columns: subject, org_id, campaign_id,\n"
               "                     message_id, stage; others go along as data. Needs "
               "--pipeline.\n"
               "Exit code 66 if there is no such action, 65 if a line cannot be read.",
        .options = {{"pipeline", "NAME", "only of this pipeline; for import: which one begins"},
                    {"org", "ORG", "only of this organisation; for import: where none is named"},
                    {"stage", "STAGE", "for import: where runs enter whose line names no stage"},
                    {"status", "S",
                     "list only these: pending, held, running, done, dead, cancelled"},
                    {"limit", "N", "at most N (default: list 100, others all)"},
                    FORMAT_OPTION},
        .run = command_actions,
    },
    {
        .name = "push",
        .argument = "[VERB [PUSH [STAGE]]]",
        .choices = "list show decide",
        .more = 2,
        .summary = "list and show pushes that are split, and decide what the remainder gets",
        .doc = "list                 pushes, when they were dealt and who decided them\n"
               "show PUSH            subjects of each variant, its KPI now and at the decision; "
               "how many "
               "wait\n"
               "decide PUSH STAGE    the remainder gets this stage, or nobody; counts once for all "
               "instances\n"
               "Exit code 66 if there is no such push, 1 if it was decided before.",
        .options = {{"by", "WHO", "decide: who decides (default: the role of the session)"},
                    FORMAT_OPTION},
        .run = command_push,
    },
    {
        .name = "suppressions",
        .argument = "[VERB [FILE|ORG PERSON]]",
        .choices = "list export import add remove",
        .more = 2,
        .summary = "list, export, import, add or remove persons who are to get nothing more",
        .doc = "list               who is suppressed, why, and what was removed\n"
               "export             what is not removed, as CSV\n"
               "import FILE        add the persons of a CSV file (- reads the standard input);\n"
               "                   the first line names the columns: org_id, person, class,\n"
               "                   since, and those of an export\n"
               "add ORG PERSON     with --class and --by\n"
               "remove ORG PERSON  with --reason and --by; the history stays\n"
               "Exit code 1 if nothing was added or removed, 65 if a line cannot be read.",
        .options = {{"org", "ORG", "only of this organisation; for import: where none is named"},
                    {"person", "ID", "list and export: only this person"},
                    {"class", "CLASS", "import and add: why, such as MANUAL; where none is named"},
                    {"by", "WHO", "who imports, adds or removes"},
                    {"reason", "TEXT", "why the person is removed"},
                    {"limit", "N", "list at most N (default: 100)"},
                    FORMAT_OPTION},
        .run = command_suppressions,
    },
    {
        /* The command asks Kafka and PostgreSQL itself, since the daemon may have stopped. */
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
            "Refused while a receiptd works on the partition. A daemon that has stopped before\n"
            "it does not count, and goes on within seconds. Each change is recorded in the\n"
            "table position_change. Exit code 75: refused for now; 66: no such partition.",
        .options = {{"reader", "READER",
                     "receipts, folds, actions, messages (default: show all, change receipts)"},
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
        .summary = "ask or steer the running daemon, set limits and pauses",
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
                    {"weight", "N", "org set: its share of a turn, against 1"},
                    {"open-runs", "N", "org set: runs that may be open at once; 0: no cap"}},
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
