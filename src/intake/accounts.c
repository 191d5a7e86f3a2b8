/* The accounts of the intake, at the start and after a reload. An account lives as long as the
 * intake has its name: requests in flight, figures and memories refer to it. Only its adapter, made
 * from the configuration, is exchanged. An adapter that requests in flight may still use is freed
 * when there are none. Called by intake.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

#define DEFAULT_REPLAY_MS 300000

/* The order that compare_names in request.c searches by: memcmp, then size. */
static int compare_accounts(const void *left, const void *right)
{
    const struct intake_account *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Takes the account of this name out of the list; makes a new one if there is none. */
static struct intake_account *take_account(struct rcpt_intake *intake, const char *name)
{
    for (size_t i = 0; i < intake->account_count; i++) {
        struct intake_account *account = intake->accounts[i];
        if (account != NULL && strcmp(account->name, name) == 0) {
            intake->accounts[i] = NULL;
            return account;
        }
    }
    struct intake_account *account = rcpt_calloc(1, sizeof(*account));
    account->name = rcpt_strdup(name);
    account->name_size = strlen(name);
    account->number = intake->next_number++;
    account->stats.account = account->name;
    return account;
}

static void retire(struct rcpt_intake *intake, struct rcpt_gateway_account *adapter,
                   struct intake_account *account)
{
    struct intake_retired *retired = rcpt_calloc(1, sizeof(*retired));
    *retired = (struct intake_retired){adapter, account, intake->retired};
    intake->retired = retired;
}

static void set_adapter(struct rcpt_intake *intake, struct intake_account *account,
                        struct rcpt_gateway_account *adapter, int64_t max_age_ms)
{
    if (account->adapter != NULL)
        retire(intake, account->adapter, NULL);
    account->adapter = adapter;
    account->max_age_ms = max_age_ms > 0 ? max_age_ms : DEFAULT_REPLAY_MS;
    account->stats.gateway = rcpt_gateway_account_gateway(adapter);
}

/* The producer's topics are those of the start. */
static bool check_targets(struct rcpt_intake *intake, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    for (size_t i = 0; i < config->intake.accounts_count; i++) {
        const char *topic = rcpt_config_intake_topic(config, &config->intake.accounts[i]);
        if (intake_find_target(intake, topic) != NULL)
            continue;
        rcpt_error_fatal(error, EX_CONFIG, "intake account %s: topic: \"%.249s\" is new",
                         config->intake.accounts[i].name, topic);
        rcpt_error_hint(error, "restart: the topics of the start stay");
        return false;
    }
    return true;
}

/* All adapters are made before one is taken: a reload that fails changes nothing. */
bool intake_make_accounts(struct rcpt_intake *intake, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    size_t count = config->intake.accounts_count, made = 0;
    if (count == 0) {
        rcpt_error_fatal(error, EX_CONFIG, "intake.accounts names no account");
        rcpt_error_hint(error, "each gateway needs one: name, gateway, org_id, secrets");
        return false;
    }
    if (!check_targets(intake, error))
        return false;
    struct rcpt_gateway_account **adapters = rcpt_calloc(count, sizeof(*adapters));
    struct intake_account **accounts = rcpt_calloc(count, sizeof(struct intake_account *));
    while (made < count && (adapters[made] = rcpt_gateway_account_new(
                                &config->intake.accounts[made], config->ladder, error)) != NULL)
        made++;
    for (size_t i = 0; i < made && made < count; i++)
        rcpt_gateway_account_free(adapters[i]);
    for (size_t i = 0; i < count && made == count; i++) {
        accounts[i] = take_account(intake, rcpt_gateway_account_name(adapters[i]));
        set_adapter(intake, accounts[i], adapters[i], config->intake.accounts[i].max_age_ms);
        accounts[i]->target = intake_find_target(
            intake, rcpt_config_intake_topic(config, &config->intake.accounts[i]));
    }
    free(adapters);
    if (made < count) {
        free(accounts);
        return false;
    }
    for (size_t i = 0; i < intake->account_count; i++)
        if (intake->accounts[i] != NULL)
            retire(intake, intake->accounts[i]->adapter, intake->accounts[i]);
    free(intake->accounts);
    intake->accounts = accounts;
    intake->account_count = count;
    qsort(accounts, count, sizeof(struct intake_account *), compare_accounts);
    return true; /* no name is there twice: the configuration's check has seen to that */
}

static void free_account(struct intake_account *account)
{
    if (account != NULL)
        free((void *)(uintptr_t)account->name);
    free(account);
}

void intake_free_retired(struct rcpt_intake *intake)
{
    while (intake->retired != NULL) {
        struct intake_retired *retired = intake->retired;
        intake->retired = retired->next;
        rcpt_gateway_account_free(retired->adapter);
        free_account(retired->account);
        free(retired);
    }
}

void intake_free_accounts(struct rcpt_intake *intake)
{
    intake_free_retired(intake);
    for (size_t i = 0; i < intake->account_count; i++) {
        rcpt_gateway_account_free(intake->accounts[i]->adapter);
        free_account(intake->accounts[i]);
    }
    free(intake->accounts);
}
