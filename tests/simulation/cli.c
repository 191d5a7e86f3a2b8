/* The command line of the simulator (scripts/campaign simulate). Called by test_simulation.c. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "simulation.h"

enum {
    OPTION_FIRST = 256,
    FROM,
    SEEDS,
    JOBS,
    COVERAGE,
    TRACE_HASH,
    VERBOSE,
    FIRST,
    WITNESSES,
    WITHOUT,
    RECORDS,
    INSTANCES,
    TOPICS,
    PARTITIONS,
    LANES,
    HELP
};

static const struct option options[] = {
    {"from", required_argument, NULL, FROM},
    {"seeds", required_argument, NULL, SEEDS},
    {"jobs", required_argument, NULL, JOBS},
    {"coverage", no_argument, NULL, COVERAGE},
    {"trace-hash", no_argument, NULL, TRACE_HASH},
    {"verbose", no_argument, NULL, VERBOSE},
    {"first", no_argument, NULL, FIRST},
    {"witnesses", no_argument, NULL, WITNESSES},
    {"without", required_argument, NULL, WITHOUT},
    {"records", required_argument, NULL, RECORDS},
    {"instances", required_argument, NULL, INSTANCES},
    {"topics", required_argument, NULL, TOPICS},
    {"partitions", required_argument, NULL, PARTITIONS},
    {"lanes", required_argument, NULL, LANES},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: simulate [--from SEED] [--seeds N] [--jobs J]\n"
    "  --coverage      which fault met which state, as a table\n"
    "  --trace-hash    the hash of each seed's course\n"
    "  --verbose       the course of the first seed, line by line\n"
    "  --first         stop at the first anomaly, without shrinking\n"
    "  --witnesses     the seeds where a fault met a state for the first time\n"
    "  --without A,B   switch kinds of faults off\n"
    "  --records N, --instances N, --topics N, --partitions N, --lanes N: at most so many\n";

static bool parse_faults(char *list, uint32_t *mask)
{
    for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ",")) {
        int fault = 0;
        while (fault < FAULT__COUNT && strcmp(sim_fault_name((enum sim_fault)fault), name) != 0)
            fault++;
        if (fault == FAULT__COUNT) {
            fprintf(stderr, "simulate: there is no fault %s\n", name);
            return false;
        }
        *mask |= 1u << fault;
    }
    return true;
}

struct wishes {
    struct sim_campaign campaign;
    bool coverage, trace_hash, verbose;
};

static bool take_option(int option, char *value, struct wishes *wishes)
{
    struct sim_limits *limits = &wishes->campaign.limits;
    uint64_t number = value != NULL ? strtoull(value, NULL, 10) : 0;
    switch (option) {
    case FROM:
        wishes->campaign.from = number;
        break;
    case SEEDS:
        wishes->campaign.seeds = number;
        break;
    case JOBS:
        wishes->campaign.jobs = number > 0 ? (uint32_t)number : 1;
        break;
    case COVERAGE:
        wishes->coverage = true;
        break;
    case TRACE_HASH:
        wishes->trace_hash = true;
        break;
    case VERBOSE:
        wishes->verbose = true;
        break;
    case FIRST:
        wishes->campaign.stop_at_first = true;
        break;
    case WITNESSES:
        wishes->campaign.witnesses = true;
        break;
    case WITHOUT:
        return parse_faults(value, &limits->without);
    case RECORDS:
        limits->records = (uint32_t)number;
        break;
    case INSTANCES:
        limits->instances = (uint32_t)number;
        break;
    case TOPICS:
        limits->topics = (uint32_t)number;
        break;
    case PARTITIONS:
        limits->partitions = (uint32_t)number;
        break;
    case LANES:
        limits->lanes = (uint32_t)number;
        break;
    default:
        fputs(help, option == HELP ? stdout : stderr);
        return false;
    }
    return true;
}

static void print_traces(const struct sim_campaign *campaign)
{
    static struct sim_coverage unused;
    for (uint64_t at = 0; at < campaign->seeds; at++) {
        struct sim_outcome outcome;
        sim_play(campaign->from + at, &campaign->limits, &unused, NULL, &outcome);
        printf("%llu %016llx %s\n", (unsigned long long)(campaign->from + at),
               (unsigned long long)outcome.trace, outcome.anomaly);
    }
}

static void print_course(const struct sim_campaign *campaign)
{
    static struct sim_coverage unused;
    struct sim_plan plan;
    struct sim_outcome outcome;
    sim_plan_draw(&plan, campaign->from, &campaign->limits);
    sim_plan_print(&plan, stdout);
    sim_play(campaign->from, &campaign->limits, &unused, stdout, &outcome);
}

int sim_main(int argc, char **argv)
{
    static struct wishes wishes = {.campaign = {.from = 1, .seeds = 2000, .jobs = 1}};
    struct sim_campaign *campaign = &wishes.campaign;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take_option(option, optarg, &wishes))
            return option == HELP ? 0 : 2;
    }
    if (wishes.verbose)
        print_course(campaign);
    if (wishes.trace_hash)
        print_traces(campaign);
    sim_campaign_run(campaign);
    if (wishes.coverage)
        sim_coverage_print(&campaign->coverage, stdout);
    if (campaign->stop_at_first && campaign->anomalies > 0)
        printf("first: seed %llu: %s: %s\n", (unsigned long long)campaign->first_seed,
               campaign->first.anomaly, campaign->first.detail);
    printf("%llu seeds, %llu receipts, %llu anomalies\n", (unsigned long long)campaign->seeds,
           (unsigned long long)campaign->receipts, (unsigned long long)campaign->anomalies);
    return campaign->anomalies > 0;
}
