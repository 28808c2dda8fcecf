/* libcupti as a file of its own, as it is in the world: each function jumps to the fake's of the same name. The fake alone
 * is one file under many names, in which neither the loader nor /proc/self/maps shows a libcupti.
 *
 * Who subscribes is announced to the driver's threads before the table is there that they look into, as in CUPTI 13.0 to
 * 13.4; who leaves has freed it before that is known.
 *
 * With -DSEVERAL_CLIENTS it has what CUDA 13.2 brought for more than one client: a subscription by its other name, and
 * a function that only tells that the interface is there.
 *
 * With -DSLOW_TABLES tables come from elsewhere than calloc, and late.
 *
 *   cc -shared -fPIC -Wl,-soname,libcupti.so.13 -Wl,--hash-style=both -o libcupti.so.13 cupti_file.c -ldl
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#ifdef SLOW_TABLES
#include <unistd.h>
#endif

#define CUPTI_FUNCTIONS(X)                                                                                        \
    X(cuptiGetVersion) X(cuptiGetResultString) X(cuptiGetTimestamp) X(cuptiGetStreamIdEx) X(cuptiGetContextId)    \
    X(cuptiGetDeviceId) X(cuptiGetGraphId) X(cuptiGetGraphExecId) X(cuptiGetGraphNodeId) X(cuptiGetThreadIdType)  \
    X(cuptiSetThreadIdType) X(cuptiEnableCallback) X(cuptiEnableDomain)                                           \
    X(cuptiEnableAllDomains) X(cuptiGetCallbackState) X(cuptiGetCallbackName) X(cuptiFinalize)                    \
    X(cuptiNvtxInitialize) X(cuptiNvtxInitialize2) X(cuptiActivitySetAttribute) X(cuptiActivityGetAttribute)      \
    X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable)                              \
    X(cuptiActivityEnableContext) X(cuptiActivityDisableContext) X(cuptiActivityEnableDriverApi)                  \
    X(cuptiActivityEnableRuntimeApi) X(cuptiActivityFlushAll) X(cuptiActivityFlushPeriod)                         \
    X(cuptiActivityGetNextRecord) X(cuptiActivityGetNumDroppedRecords)                                            \
    X(cuptiActivityRegisterTimestampCallback) X(cuptiActivityEnableLatencyTimestamps)                             \
    X(cuptiActivityPushExternalCorrelationId) X(cuptiActivityPopExternalCorrelationId)                            \
    X(cuptiActivityEnableAllSyncRecords) X(cuptiActivityEnableCudaEventDeviceTimestamps)                          \
    X(cuptiActivityEnableAndDump) X(cuptiActivityEnableHWTrace)

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

static int (*to_cuptiSubscribe)(void **, void (*)(void), void *), (*to_cuptiUnsubscribe)(void *);
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
    *(void **)&to_cuptiSubscribe = driver ? look_up(driver, "cuptiSubscribe") : NULL;
    *(void **)&to_cuptiUnsubscribe = driver ? look_up(driver, "cuptiUnsubscribe") : NULL;
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

static int cupti_subscribe(void **subscriber, void (*called)(void), void *user) {
    int result = to_cuptiSubscribe ? to_cuptiSubscribe(subscriber, called, user) : not_supported();
    if (result != 0)
        return result;
    of_client = new_table();
    announce(1, of_all);
    void *made = new_table();
    announce(1, of_all = made);
    return 0;
}

int cuptiSubscribe(void **subscriber, void (*called)(void), void *user) { return cupti_subscribe(subscriber, called, user); }

int cuptiUnsubscribe(void *subscriber) {
    int result = to_cuptiUnsubscribe ? to_cuptiUnsubscribe(subscriber) : not_supported();
    if (result != 0)
        return result;
    end_table(of_client);
    end_table(of_all);
    announce(0, of_all);
    return 0;
}

#ifdef SEVERAL_CLIENTS
int cuptiSubscribe_v2(void **subscriber, void (*called)(void), void *user, void *parameters) {
    (void)parameters;
    return cupti_subscribe(subscriber, called, user);
}

int cuptiActivityEnable_v2(void) { return not_supported(); }
#endif
