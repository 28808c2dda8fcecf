/* A program with a CUPTI client of its own that is linked against libcupti: its calls are ordinary undefined symbols, as
 * those of a framework's library are, so that a preloaded library can stand between.
 *
 *   linked_client SESSIONS N   N kernels before, in and after each session; only those in a session are asked for
 *   linked_client SESSIONS N LIBRARY   loads a library after the first session, as Python does in a process that has run
 *                                      for a while, and waits for input behind that and behind each session that follows
 */
#define _GNU_SOURCE 1
#include "driver.h"

enum { KERNEL_KIND = 10, BUFFER_BYTES = 1 << 20 };

extern int cuptiGetVersion(uint32_t *);
extern int cuptiActivityRegisterCallbacks(void (*)(uint8_t **, size_t *, size_t *),
                                          void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
extern int cuptiActivityEnable(uint32_t);
extern int cuptiActivityDisable(uint32_t);
extern int cuptiActivityFlushAll(uint32_t);
extern int cuptiActivityGetNextRecord(uint8_t *, size_t, void **);
extern int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *);

static long kernels, foreign;
static uint8_t *lent[64];

static void request(uint8_t **buffer, size_t *size, size_t *records) {
    *size = BUFFER_BYTES;
    *records = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    for (int i = 0; i < 64; i++) {
        if (!lent[i]) {
            lent[i] = *buffer;
            return;
        }
    }
}

/* A buffer that it did not lend is another client's: such a client throws it away. */
static int give_back(uint8_t *buffer) {
    for (int i = 0; i < 64; i++) {
        if (lent[i] == buffer) {
            lent[i] = NULL;
            return 1;
        }
    }
    return 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    void *record = NULL;
    (void)context, (void)stream, (void)size;
    if (!give_back(buffer)) {
        foreign++;
        return;
    }
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == 0)
        kernels += *(uint32_t *)record == KERNEL_KIND;
    free(buffer);
}

static void launch_some(CUfunction noop, long count) {
    for (long i = 0; i < count; i++)
        launch(noop, 1, 32, NULL, NULL);
    CHECK(cuCtxSynchronize());
}

static void load(const char *path) {
    int (*initialise)(void) = NULL;
    setenv("TRACESMITH_ARMED", "1", 1);
    void *library = dlopen(path, RTLD_NOW);
    if (library)
        *(void **)&initialise = dlsym(library, "InitializeInjection");
    if (!initialise || initialise() != 1) {
        fprintf(stderr, "failed to load: %s\n", dlerror());
        exit(2);
    }
    unsetenv("TRACESMITH_ARMED");
}

static void halt(void) {
    char line[64];
    printf("at %ld\n", kernels);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(3);
}

int main(int argument_count, char **arguments) {
    long sessions = argument_count > 1 ? atol(arguments[1]) : 1;
    long count = argument_count > 2 ? atol(arguments[2]) : 10;
    uint32_t version = 0;
    start_device();
    cuptiGetVersion(&version);
    CUfunction noop = kernel("noop");
    launch_some(noop, count);
    for (long i = 0; i < sessions; i++) {
        cuptiActivityRegisterCallbacks(request, complete);
        cuptiActivityEnable(KERNEL_KIND);
        launch_some(noop, count);
        cuptiActivityFlushAll(1);
        cuptiActivityDisable(KERNEL_KIND);
        launch_some(noop, count);
        if (argument_count > 3 && i == 0)
            load(arguments[3]);
        if (argument_count > 3)
            halt();
    }
    printf("launched %ld client kernels %ld foreign %ld version %u\n", (2 * sessions + 1) * count, kernels, foreign,
           version);
    return 0;
}
