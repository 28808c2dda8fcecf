/* A profiler that writes down everything it is told, as text: loaded by the driver through CUDA_INJECTION64_PATH, against
 * the fake and the real one alike. What it asks for:
 *
 *   SPY_OUT        the file to write; standard error without it
 *   SPY_KINDS      activity kinds, such as 10,1,2
 *   SPY_CALLBACKS  callbacks, such as 1:307,3:*  (domain:id, or a whole domain)
 *   SPY_BUFFER     bytes of a buffer (default 1048576)
 *   SPY_FILTER     driver calls to leave out, by id
 *   SPY_LATENCY    turn on latency timestamps
 *   SPY_PERIOD     flush period in milliseconds
 *   SPY_TWICE      register the buffer functions a second time, with a function that marks its lines
 *   SPY_EXTERNAL   push an external correlation id at the start
 *   SPY_FLUSH_CHILD  flush at the end of a forked child, too (the real library never returns from that)
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t buffer_size = 1 << 20;

#define CUPTI(name) ((int (*)())dlsym(cupti, #name))
static void *cupti;

static uint32_t u32(const void *record, size_t offset) {
    uint32_t value;
    memcpy(&value, (const char *)record + offset, 4);
    return value;
}

static uint64_t u64(const void *record, size_t offset) {
    uint64_t value;
    memcpy(&value, (const char *)record + offset, 8);
    return value;
}

static const char *thread_name(void) { return syscall(SYS_gettid) == getpid() ? "main" : "other"; }

static const char *text(uint64_t address) { return address ? (const char *)(uintptr_t)address : "-"; }

/* One line for each record. Times are given as they are; `at` is the offset in the buffer. */
static void print_record(const void *r, size_t at) {
    uint32_t kind = u32(r, 0);
    fprintf(out, "record %u at %zu ", kind, at);
    switch (kind) {
    case 1:
        fprintf(out, "copy kind %u from %u to %u flags %u bytes %lu start %lu end %lu device %u context %u stream %u corr %u node %lu graph %u\n",
                u32(r, 4) & 255, u32(r, 4) >> 8 & 255, u32(r, 4) >> 16 & 255, u32(r, 4) >> 24, u64(r, 8), u64(r, 16),
                u64(r, 24), u32(r, 32), u32(r, 36), u32(r, 40), u32(r, 44), u64(r, 64), u32(r, 72));
        break;
    case 2:
        fprintf(out, "set value %u bytes %lu start %lu end %lu device %u context %u stream %u corr %u memory %u node %lu graph %u\n",
                u32(r, 4), u64(r, 8), u64(r, 16), u64(r, 24), u32(r, 32), u32(r, 36), u32(r, 40), u32(r, 44),
                u32(r, 48) >> 16, u64(r, 64), u32(r, 72));
        break;
    case 3:
    case 10:
        fprintf(out,
                "kernel %s start %lu end %lu completed %lu device %u context %u stream %u corr %u grid %u %u %u block %u %u %u shared %u registers %u gridid %lu queued %lu submitted %lu node %lu graph %u channel %u %u type %u\n",
                text(u64(r, 104)), u64(r, 16), u64(r, 24), u64(r, 32), u32(r, 40), u32(r, 44), u32(r, 48), u32(r, 92),
                u32(r, 52), u32(r, 56), u32(r, 60), u32(r, 64), u32(r, 68), u32(r, 72), u32(r, 80), u32(r, 4) >> 16,
                u64(r, 96), u64(r, 120), u64(r, 128), u64(r, 144), u32(r, 156), u32(r, 168), u32(r, 172),
                u32(r, 136) & 255);
        break;
    case 4:
    case 5:
        fprintf(out, "api %u start %lu end %lu pid %d corr %u return %u\n", u32(r, 4), u64(r, 8), u64(r, 16),
                u32(r, 24) == (uint32_t)getpid(), u32(r, 32), u32(r, 36));
        break;
    case 8:
        fprintf(out, "device %u memory %lu sms %u capability %u.%u name %s\n", u32(r, 112), u64(r, 16), u32(r, 44),
                u32(r, 104), u32(r, 108), text(u64(r, 136)));
        break;
    case 9:
        fprintf(out, "context %u device %u null stream %u\n", u32(r, 4), u32(r, 8), u32(r, 12) >> 16);
        break;
    case 12:
        fprintf(out, "marker flags %u time %lu id %u object %u name %s domain %s\n", u32(r, 4), u64(r, 8), u32(r, 16),
                u32(r, 20), text(u64(r, 40)), text(u64(r, 48)));
        break;
    case 13:
        fprintf(out, "marker data flags %u id %u payload %u %lu color %x category %u\n", u32(r, 4), u32(r, 8),
                u32(r, 12), u64(r, 16), u32(r, 24), u32(r, 28));
        break;
    case 17:
        fprintf(out, "overhead %u object %u start %lu end %lu\n", u32(r, 4), u32(r, 8), u64(r, 24), u64(r, 32));
        break;
    case 22:
        fprintf(out, "peer copy kind %u bytes %lu start %lu end %lu from %u to %u corr %u\n", u32(r, 4) & 255, u64(r, 8),
                u64(r, 16), u64(r, 24), u32(r, 44), u32(r, 52), u32(r, 60));
        break;
    case 36:
        fprintf(out, "event corr %u context %u stream %u event %u\n", u32(r, 4), u32(r, 8), u32(r, 12), u32(r, 16));
        break;
    case 37:
        fprintf(out, "stream context %u stream %u priority %u flag %u corr %u\n", u32(r, 4), u32(r, 8), u32(r, 12),
                u32(r, 16), u32(r, 20));
        break;
    case 38:
        fprintf(out, "wait %u start %lu end %lu corr %u context %u stream %d event %d\n", u32(r, 4), u64(r, 8), u64(r, 16),
                u32(r, 24), u32(r, 28), (int)u32(r, 32), (int)u32(r, 36));
        break;
    case 39:
        fprintf(out, "external kind %u id %lu corr %u\n", u32(r, 4), u64(r, 8), u32(r, 16));
        break;
    case 49:
        fprintf(out, "memory op %u kind %u corr %u bytes %lu time %lu device %u context %u stream %d async %u pool %u\n",
                u32(r, 4), u32(r, 8), u32(r, 12), u64(r, 24), u64(r, 32), u32(r, 52), u32(r, 56), (int)u32(r, 60),
                u32(r, 72), u32(r, 80));
        break;
    case 50:
        fprintf(out, "pool op %u type %u corr %u device %u size %lu time %lu\n", u32(r, 4), u32(r, 8), u32(r, 12),
                u32(r, 20), u64(r, 40), u64(r, 56));
        break;
    case 51:
        fprintf(out, "graph corr %u start %lu end %lu device %u graph %u context %u stream %u\n", u32(r, 4), u64(r, 8),
                u64(r, 16), u32(r, 24), u32(r, 28), u32(r, 32), u32(r, 36));
        break;
    default:
        fprintf(out, "other\n");
    }
}

static void request(uint8_t **buffer, size_t *size, size_t *records) {
    *size = buffer_size;
    *buffer = aligned_alloc(8, buffer_size);
    *records = 0;
    pthread_mutex_lock(&lock);
    fprintf(out, "request thread %s\n", thread_name());
    pthread_mutex_unlock(&lock);
}

static void complete_as(const char *who, void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    void *record = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&lock);
    fprintf(out, "%s thread %s context %d stream %u size %zu valid %zu\n", who, thread_name(), context != NULL, stream,
            size, valid);
    while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == 0)
        print_record(record, (size_t)((uint8_t *)record - buffer));
    CUPTI(cuptiActivityGetNumDroppedRecords)(context, stream, &dropped);
    if (dropped)
        fprintf(out, "dropped %zu\n", dropped);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    complete_as("complete", context, stream, buffer, size, valid);
}

static void complete_second(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    complete_as("second", context, stream, buffer, size, valid);
}

typedef struct {
    uint32_t site;
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_uid;
    uint64_t *data;
    uint32_t correlation;
} callback_data;

static void callback(void *user, uint32_t domain, uint32_t id, const void *data) {
    static _Thread_local int depth;
    (void)user;
    pthread_mutex_lock(&lock);
    if (domain == 1 || domain == 2) {
        const callback_data *d = data;
        if (d->site == 0)
            *d->data = 0x5157 + id;
        fprintf(out, "callback %u:%u %s %s depth %d corr %u context %u symbol %s kept %d", domain, id,
                d->site ? "exit" : "enter", d->function, d->site ? --depth : depth++, d->correlation, d->context_uid,
                d->symbol ? d->symbol : "-", *d->data == 0x5157 + id);
        if (d->site)
            fprintf(out, " result %d", *(int *)d->result);
        if (domain == 1 && id == 307)
            fprintf(out, " grid %u block %u", u32(d->parameters, 8), u32(d->parameters, 20));
        if (domain == 1 && id == 243)
            fprintf(out, " bytes %lu", u64(d->parameters, 8));
        fprintf(out, "\n");
    } else if (domain == 3) {
        void *const *d = data;
        fprintf(out, "callback 3:%u resource data %d", id, data != NULL);
        fflush(out);
        if (data)
            fprintf(out, " context %d stream %d descriptor %d", d[0] != NULL, d[1] != NULL, d[2] != NULL);
        fflush(out);
        if (data && d[2] && (id == 6 || id == 7)) {
            const uint8_t *image = (const uint8_t *)(uintptr_t)u64(d[2], 16);
            fprintf(out, " module %u bytes %d image %d", u32(d[2], 0), u64(d[2], 8) > 0, image != NULL);
            fflush(out);
            if (image)
                fprintf(out, " magic %02x%02x", image[0], image[1]);
        }
        if (data && d[2] && id >= 9 && id <= 23)
            fprintf(out, " graph %d original %d node %d original %d type %u dependency %d exec %d", u64(d[2], 0) != 0,
                    u64(d[2], 8) != 0, u64(d[2], 16) != 0, u64(d[2], 24) != 0, u32(d[2], 32), u64(d[2], 40) != 0,
                    u64(d[2], 48) != 0);
        fprintf(out, "\n");
    } else {
        fprintf(out, "callback %u:%u\n", domain, id);
    }
    pthread_mutex_unlock(&lock);
}

static pid_t process;

static void at_end(void) {
    pthread_mutex_lock(&lock);
    fprintf(out, "end\n");
    pthread_mutex_unlock(&lock);
    if (getenv("SPY_KINDS") && (getpid() == process || getenv("SPY_FLUSH_CHILD"))) {
        int result = CUPTI(cuptiActivityFlushAll)(1);
        fprintf(out, "flushed %d\n", result);
    }
    fflush(out);
}

static void choose_kinds(const char *list) {
    for (char *copy = strdup(list), *part = strtok(copy, ","); part; part = strtok(NULL, ",")) {
        int result = CUPTI(cuptiActivityEnable)((uint32_t)atoi(part));
        if (result)
            fprintf(out, "enable %s result %d\n", part, result);
    }
}

static void choose_callbacks(const char *list) {
    void *subscriber = NULL;
    int result = CUPTI(cuptiSubscribe)(&subscriber, callback, NULL);
    fprintf(out, "subscribe %d\n", result);
    if (result)
        return;
    for (char *copy = strdup(list), *part = strtok(copy, ","); part; part = strtok(NULL, ",")) {
        uint32_t domain = (uint32_t)atoi(part);
        const char *id = strchr(part, ':') + 1;
        if (*id == '*')
            CUPTI(cuptiEnableDomain)(1, subscriber, domain);
        else
            CUPTI(cuptiEnableCallback)(1, subscriber, domain, (uint32_t)atoi(id));
    }
}

int InitializeInjection(void) {
    const char *path = getenv("SPY_OUT"), *value;
    uint32_t version = 0;
    process = getpid();
    out = path ? fopen(path, "w") : stderr;
    cupti = dlopen("libcupti.so.13", RTLD_NOW);
    if (!cupti)
        cupti = dlopen("libcupti.so.12", RTLD_NOW);
    if (!cupti) {
        fprintf(out, "no cupti: %s\n", dlerror());
        fflush(out);
        return 0;
    }
    CUPTI(cuptiGetVersion)(&version);
    fprintf(out, "version %u\n", version);
    if ((value = getenv("SPY_BUFFER")))
        buffer_size = (size_t)atol(value);
    if (getenv("SPY_KINDS"))
        CUPTI(cuptiActivityRegisterCallbacks)(request, complete);
    if (getenv("SPY_LATENCY"))
        fprintf(out, "latency %d\n", CUPTI(cuptiActivityEnableLatencyTimestamps)(1));
    if ((value = getenv("SPY_KINDS")))
        choose_kinds(value);
    if ((value = getenv("SPY_FILTER")))
        fprintf(out, "filter %d\n", CUPTI(cuptiActivityEnableDriverApi)((uint32_t)atoi(value), 0));
    if (getenv("SPY_TWICE"))
        fprintf(out, "twice %d\n", CUPTI(cuptiActivityRegisterCallbacks)(request, complete_second));
    if ((value = getenv("SPY_PERIOD")))
        fprintf(out, "period %d\n", CUPTI(cuptiActivityFlushPeriod)((uint32_t)atoi(value)));
    if (getenv("SPY_EXTERNAL"))
        fprintf(out, "external %d\n", CUPTI(cuptiActivityPushExternalCorrelationId)(5u, (uint64_t)77));
    if ((value = getenv("SPY_CALLBACKS")))
        choose_callbacks(value);
    fflush(out);
    atexit(at_end);
    return 1;
}

int InitializeInjectionNvtx2(void *get_export_table) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    int (*initialize)(void *);
    *(void **)&initialize = library ? dlsym(library, "cuptiNvtxInitialize2") : NULL;
    return initialize ? initialize(get_export_table) == 0 : 0;
}
