/* libcupti as a file of its own, as it is in the world: each function jumps to the fake's of the same name. The fake alone
 * is one file under many names, in which neither the loader nor /proc/self/maps shows a libcupti.
 *
 * Who subscribes is announced to the driver's threads before the table is there that they look into, as in CUPTI 13.0 to
 * 13.4; who leaves has freed it before that is known.
 *
 * Subscriptions hang on a list as C++ has them, each an object that begins with the client's function and its word, and
 * whose address is the handle. Kinds that are enabled are bits of a word, which is there from the first enabled kind on.
 * Both as in CUPTI 13.0.
 *
 * With -DSEVERAL_CLIENTS it has what CUDA 13.2 brought for more than one client: a subscription by its other name, and
 * a function that only tells that the interface is there.
 *
 * With -DHIDDEN_KINDS no word has a bit set for each enabled kind: the word is inverted.
 *
 * With -DSLOW_TABLES tables come from elsewhere than calloc, and late.
 *
 *   cc -shared -fPIC -Wl,-soname,libcupti.so.13 -Wl,--hash-style=both -o libcupti.so.13 cupti_file.c -ldl
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef SLOW_TABLES
#include <unistd.h>
#endif

#define CUPTI_FUNCTIONS(X)                                                                                        \
    X(cuptiGetVersion) X(cuptiGetResultString) X(cuptiGetTimestamp) X(cuptiGetStreamIdEx) X(cuptiGetContextId)    \
    X(cuptiGetDeviceId) X(cuptiGetGraphId) X(cuptiGetGraphExecId) X(cuptiGetGraphNodeId) X(cuptiGetThreadIdType)  \
    X(cuptiSetThreadIdType) X(cuptiGetCallbackName)                                                               \
    X(cuptiNvtxInitialize) X(cuptiNvtxInitialize2) X(cuptiActivitySetAttribute) X(cuptiActivityGetAttribute)      \
    X(cuptiActivityRegisterCallbacks)                                                                             \
    X(cuptiActivityEnableContext) X(cuptiActivityDisableContext) X(cuptiActivityEnableDriverApi)                  \
    X(cuptiActivityEnableRuntimeApi) X(cuptiActivityFlushAll) X(cuptiActivityFlushPeriod)                         \
    X(cuptiActivityGetNextRecord) X(cuptiActivityGetNumDroppedRecords)                                            \
    X(cuptiActivityRegisterTimestampCallback) X(cuptiActivityEnableLatencyTimestamps)                             \
    X(cuptiActivityPushExternalCorrelationId) X(cuptiActivityPopExternalCorrelationId)                            \
    X(cuptiActivityEnableAllSyncRecords) X(cuptiActivityEnableCudaEventDeviceTimestamps)                          \
    X(cuptiActivityEnableHWTrace)

/* Those that this file has something to do with itself. */
#define OWN_FUNCTIONS(X)                                                                                          \
    X(cuptiSubscribe, (void **, void (*)(void), void *)) X(cuptiUnsubscribe, (void *)) X(cuptiFinalize, (void))   \
    X(cuptiEnableCallback, (uint32_t, void *, uint32_t, uint32_t)) X(cuptiEnableAllDomains, (uint32_t, void *))   \
    X(cuptiEnableDomain, (uint32_t, void *, uint32_t))                                                            \
    X(cuptiGetCallbackState, (uint32_t *, void *, uint32_t, uint32_t))                                            \
    X(cuptiActivityEnable, (uint32_t)) X(cuptiActivityEnableAndDump, (uint32_t)) X(cuptiActivityDisable, (uint32_t))

#define JUMP(name)                                       \
    __attribute__((visibility("hidden"))) void *to_##name; \
    __asm__(".pushsection .text\n"                        \
            ".globl " #name "\n"                          \
            ".type " #name ", @function\n" #name ":\n"    \
            "jmp *to_" #name "(%rip)\n"                   \
            ".size " #name ", .-" #name "\n"              \
            ".popsection\n");
CUPTI_FUNCTIONS(JUMP)

enum { CALLBACKS = 1536 };

#define POINTER(name, arguments) static int (*to_##name) arguments;
OWN_FUNCTIONS(POINTER)

struct subscription {
    void (*called)(void);
    void *user;
    /* The handle that the fake gave. */
    void *fakes;
    uint64_t more[11];
};

struct node {
    struct node *next, *previous;
    struct subscription *element;
};

static struct node *subscriptions;

/* A bit for each enabled kind. */
static uint64_t *kinds;

#ifdef HIDDEN_KINDS
enum { IS_INVERTED = 1 };
#else
enum { IS_INVERTED = 0 };
#endif
static const uint64_t NO_KINDS = IS_INVERTED ? ~0ull : 0;

/* The fake's: whether there is a client, and where its threads look. */
static void (*announce)(int, void *);
static void *of_client, *of_all;

/* CUPTI_ERROR_NOT_SUPPORTED, for what the fake lacks. */
static int not_supported(void) { return 27; }

/* By the C library's own dlsym: a profiler that stands between programs and dlsym would find this file's functions. */
__attribute__((constructor)) static void find_functions(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
    void *(*look_up)(void *, const char *);
    *(void **)&look_up = dlvsym(libc, "dlsym", "GLIBC_2.34");
    if (!look_up)
        *(void **)&look_up = dlvsym(libc, "dlsym", "GLIBC_2.2.5");
#define FIND(name)                                       \
    to_##name = driver ? look_up(driver, #name) : NULL;  \
    if (!to_##name)                                      \
        to_##name = (void *)not_supported;
    CUPTI_FUNCTIONS(FIND)
#define FIND_OWN(name, arguments)                                     \
    *(void **)&to_##name = driver ? look_up(driver, #name) : NULL; \
    if (!to_##name)                                                \
        *(void **)&to_##name = (void *)not_supported;
    OWN_FUNCTIONS(FIND_OWN)
    subscriptions = malloc(sizeof *subscriptions);
    memset(subscriptions, 0, sizeof *subscriptions);
    subscriptions->next = subscriptions->previous = subscriptions;
    *(void **)&announce = driver ? look_up(driver, "fakeCuptiClient") : NULL;
}

#ifdef SLOW_TABLES
static void *new_table(void) {
    static unsigned tables[64][CALLBACKS], made;
    usleep(100000);
    return tables[made++ % 64];
}

static void end_table(void *table) { (void)table; }
#else
static void *new_table(void) { return calloc(CALLBACKS, 4); }

static void end_table(void *table) { free(table); }
#endif

/* A handle is compared with those that there are before anything is done with it. */
static struct node *node_of(void *handle) {
    for (struct node *node = subscriptions->next; node != subscriptions; node = node->next)
        if (node->element == handle)
            return node;
    return NULL;
}

static void *fakes(void *handle) {
    struct node *node = node_of(handle);
    return node ? node->element->fakes : NULL;
}

/* What was taken from malloc is not given back: with -DSLOW_TABLES this file does not call free. */
static void end_subscription(struct node *node) {
    if (!node)
        return;
    node->next->previous = node->previous;
    node->previous->next = node->next;
}

static int cupti_subscribe(void **subscriber, void (*called)(void), void *user) {
    void *handle = NULL;
    int result = to_cuptiSubscribe(&handle, called, user);
    if (result != 0)
        return result;
    struct subscription *made = malloc(sizeof *made);
    memset(made, 0, sizeof *made);
    made->called = called;
    made->user = user;
    made->fakes = handle;
    of_client = new_table();
    announce(1, of_all);
    struct node *node = malloc(sizeof *node);
    node->next = subscriptions;
    node->previous = subscriptions->previous;
    node->element = made;
    node->previous->next = subscriptions->previous = node;
    *subscriber = made;
    void *table = new_table();
    announce(1, of_all = table);
    return 0;
}

int cuptiSubscribe(void **subscriber, void (*called)(void), void *user) { return cupti_subscribe(subscriber, called, user); }

int cuptiUnsubscribe(void *subscriber) {
    struct node *node = node_of(subscriber);
    int result = to_cuptiUnsubscribe(fakes(subscriber));
    if (result != 0)
        return result;
    end_table(of_client);
    end_table(of_all);
    end_subscription(node);
    announce(0, of_all);
    return 0;
}

int cuptiFinalize(void) {
    int result = to_cuptiFinalize();
    if (result == 0) {
        end_subscription(subscriptions->next == subscriptions ? NULL : subscriptions->next);
        if (kinds)
            *kinds = NO_KINDS;
    }
    return result;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id) {
    return to_cuptiEnableCallback(enable, fakes(subscriber), domain, id);
}

int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain) {
    return to_cuptiEnableDomain(enable, fakes(subscriber), domain);
}

int cuptiEnableAllDomains(uint32_t enable, void *subscriber) { return to_cuptiEnableAllDomains(enable, fakes(subscriber)); }

int cuptiGetCallbackState(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t id) {
    return to_cuptiGetCallbackState(enabled, fakes(subscriber), domain, id);
}

static void set_kind(uint32_t kind, int is_enabled) {
    if (is_enabled != IS_INVERTED)
        __atomic_fetch_or(kinds, 1ull << kind, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(kinds, ~(1ull << kind), __ATOMIC_SEQ_CST);
}

static int enabled(int result, uint32_t kind) {
    if (!kinds) {
        uint64_t *none = malloc(sizeof *none), *before = NULL;
        *none = NO_KINDS;
        __atomic_compare_exchange_n(&kinds, &before, none, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (result == 0)
        set_kind(kind, 1);
    return result;
}

int cuptiActivityEnable(uint32_t kind) { return enabled(to_cuptiActivityEnable(kind), kind); }

int cuptiActivityEnableAndDump(uint32_t kind) { return enabled(to_cuptiActivityEnableAndDump(kind), kind); }

int cuptiActivityDisable(uint32_t kind) {
    int result = to_cuptiActivityDisable(kind);
    if (result == 0 && kinds)
        set_kind(kind, 0);
    return result;
}

uint64_t fakeCuptiKinds(void) { return kinds ? __atomic_load_n(kinds, __ATOMIC_SEQ_CST) ^ NO_KINDS : 0; }

#ifdef SEVERAL_CLIENTS
int cuptiSubscribe_v2(void **subscriber, void (*called)(void), void *user, void *parameters) {
    (void)parameters;
    return cupti_subscribe(subscriber, called, user);
}

int cuptiActivityEnable_v2(void) { return not_supported(); }
#endif
