/* Many seeds, in several processes, and the smallest world in which a seed still fails. Called by
 * cli.c and test_simulation.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulation.h"

/* ---- shrinking ---- */

static bool still_fails(uint64_t seed, const struct sim_limits *limits, struct sim_outcome *outcome)
{
    static struct sim_coverage unused;
    struct sim_outcome tried;
    sim_play(seed, limits, &unused, NULL, &tried);
    if (tried.anomaly[0] == '\0')
        return false;
    *outcome = tried;
    return true;
}

static void try_number(uint64_t seed, struct sim_limits *limits, struct sim_outcome *outcome,
                       uint32_t *number, uint32_t start)
{
    for (uint32_t value = start / 2; value > 0; value /= 2) {
        uint32_t before = *number;
        *number = value;
        if (!still_fails(seed, limits, outcome)) {
            *number = before;
            break;
        }
    }
}

void sim_shrink(uint64_t seed, struct sim_limits *limits, struct sim_outcome *outcome)
{
    struct sim_plan plan;
    sim_plan_draw(&plan, seed, limits);
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        struct sim_limits fewer = *limits;
        fewer.without |= 1u << fault;
        if (plan.fault_ms[fault] > 0 && still_fails(seed, &fewer, outcome))
            *limits = fewer;
    }
    try_number(seed, limits, outcome, &limits->records, plan.records);
    try_number(seed, limits, outcome, &limits->instances, plan.instances);
    try_number(seed, limits, outcome, &limits->topics, plan.topics);
    try_number(seed, limits, outcome, &limits->partitions, plan.partitions);
    try_number(seed, limits, outcome, &limits->lanes, plan.engine.lanes);
}

/* The command that plays exactly this again. */
static void print_command(uint64_t seed, const struct sim_limits *limits)
{
    printf("scripts/campaign simulate --from %llu --seeds 1 --verbose", (unsigned long long)seed);
    const char *separator = " --without ";
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        if (limits->without >> fault & 1) {
            printf("%s%s", separator, sim_fault_name((enum sim_fault)fault));
            separator = ",";
        }
    }
    const struct {
        const char *option;
        uint32_t value;
    } numbers[] = {{"records", limits->records},
                   {"instances", limits->instances},
                   {"topics", limits->topics},
                   {"partitions", limits->partitions},
                   {"lanes", limits->lanes}};
    for (size_t index = 0; index < sizeof(numbers) / sizeof(numbers[0]); index++) {
        if (numbers[index].value > 0)
            printf(" --%s %u", numbers[index].option, numbers[index].value);
    }
    printf("\n");
}

static void report(uint64_t seed, const struct sim_limits *given, const struct sim_outcome *outcome)
{
    struct sim_limits limits = *given;
    struct sim_outcome small = *outcome;
    struct sim_plan plan;
    printf("seed %llu: %s: %s\n", (unsigned long long)seed, outcome->anomaly, outcome->detail);
    fflush(stdout);
    sim_shrink(seed, &limits, &small);
    sim_plan_draw(&plan, seed, &limits);
    printf("  shrunk to %s: %s\n  ", small.anomaly, small.detail);
    sim_plan_print(&plan, stdout);
    printf("  again: ");
    print_command(seed, &limits);
    fflush(stdout);
}

/* ---- many seeds ---- */

struct tally {
    struct sim_coverage coverage;
    uint64_t receipts, anomalies, first_seed;
    struct sim_outcome first;
};

#define REPORTED 3 /* failures that are shrunk, of each process */

static void run_share(const struct sim_campaign *campaign, uint32_t share, struct tally *tally)
{
    uint32_t missing = sim_coverage_missing(&tally->coverage);
    for (uint64_t at = share; at < campaign->seeds; at += campaign->jobs) {
        struct sim_outcome outcome;
        uint64_t seed = campaign->from + at;
        sim_play(seed, &campaign->limits, &tally->coverage, NULL, &outcome);
        uint32_t left = campaign->witnesses ? sim_coverage_missing(&tally->coverage) : missing;
        if (left < missing)
            printf("witness: seed %llu, %u missing\n", (unsigned long long)seed, left);
        missing = left;
        tally->receipts += outcome.receipts;
        if (outcome.anomaly[0] == '\0')
            continue;
        if (tally->anomalies++ == 0) {
            tally->first_seed = seed;
            tally->first = outcome;
        }
        if (campaign->stop_at_first)
            return;
        if (tally->anomalies <= REPORTED)
            report(seed, &campaign->limits, &outcome);
        else
            printf("seed %llu: %s: %s\n", (unsigned long long)seed, outcome.anomaly,
                   outcome.detail);
    }
}

static void add(struct sim_campaign *campaign, const struct tally *tally)
{
    sim_coverage_add(&campaign->coverage, &tally->coverage);
    campaign->receipts += tally->receipts;
    if (tally->anomalies > 0 && campaign->anomalies == 0) {
        campaign->first_seed = tally->first_seed;
        campaign->first = tally->first;
    }
    campaign->anomalies += tally->anomalies;
}

static bool read_all(int from, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(from, (char *)to + done, size - done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void write_all(int to, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(to, (const char *)from + done, size - done);
        if (put <= 0)
            _exit(2);
        done += (size_t)put;
    }
}

static void run_processes(struct sim_campaign *campaign)
{
    struct tally *tally = rcpt_calloc(1, sizeof(*tally));
    int pipes[2];
    if (pipe(pipes) != 0)
        abort();
    fflush(stdout);
    for (uint32_t share = 0; share < campaign->jobs; share++) {
        if (fork() == 0) {
            run_share(campaign, share, tally);
            write_all(pipes[1], tally, sizeof(*tally));
            fflush(stdout);
            _exit(0);
        }
    }
    close(pipes[1]);
    for (uint32_t share = 0; share < campaign->jobs; share++) {
        memset(tally, 0, sizeof(*tally));
        if (read_all(pipes[0], tally, sizeof(*tally)))
            add(campaign, tally);
        else
            campaign->anomalies++; /* a process has died */
    }
    close(pipes[0]);
    while (wait(NULL) > 0)
        ;
    free(tally);
}

void sim_campaign_run(struct sim_campaign *campaign)
{
    if (campaign->jobs > 1) {
        run_processes(campaign);
        return;
    }
    struct tally *tally = rcpt_calloc(1, sizeof(*tally));
    campaign->jobs = 1;
    run_share(campaign, 0, tally);
    add(campaign, tally);
    free(tally);
}
