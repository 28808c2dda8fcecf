// The least that a CUPTI client can do: it enables kinds, hands out buffers, and looks at nothing. What a capture costs
// above this is ours; what this costs is CUPTI's.
//
//   NULL_KINDS=10,1,2 CUDA_INJECTION64_PATH=libnull_client.so program
//
// With NULL_BACKTRACE it also takes the stack of every launch, by the C library's own unwinder. With NULL_CALLBACKS=driver,
// runtime or both it is called at both ends of every launch, and does nothing then; with NULL_THREAD a thread of its own
// subscribes to that.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cupti.h>
#include <execinfo.h>
#include <mutex>
#include <thread>
#include <vector>

static constexpr size_t bytes = 1 << 20;
static std::mutex guard;
static std::vector<uint8_t *> pool;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
    std::lock_guard<std::mutex> lock(guard);
    *records = 0;
    *size = bytes;
    if (pool.empty()) {
        *buffer = static_cast<uint8_t *>(aligned_alloc(8, bytes));
    } else {
        *buffer = pool.back();
        pool.pop_back();
    }
}

static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t) {
    std::lock_guard<std::mutex> lock(guard);
    pool.push_back(buffer);
}

static void CUPTIAPI launched(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
    if (static_cast<const CUpti_CallbackData *>(data)->callbackSite == CUPTI_API_ENTER) {
        void *frames[256];
        backtrace(frames, 256);
    }
}

static void CUPTIAPI nothing(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

static void watch_launches(CUpti_CallbackFunc callback, bool driver, bool runtime) {
    CUpti_SubscriberHandle subscriber;
    cuptiSubscribe(&subscriber, callback, nullptr);
    for (CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx})
        if (driver) cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    for (CUpti_CallbackId id : {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060})
        if (runtime) cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id);
}

extern "C" int InitializeInjection() {
    for (int i = 0; i < 16; i++) {
        pool.push_back(static_cast<uint8_t *>(aligned_alloc(8, bytes)));
        memset(pool.back(), 0, bytes);
    }
    uint8_t off = 0;
    size_t size = sizeof off;
    cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off);
    cuptiActivityRegisterCallbacks(requested, completed);
    const char *kinds = getenv("NULL_KINDS");
    char words[256];
    strncpy(words, kinds ? kinds : "10,1,2", sizeof words - 1);
    for (char *word = strtok(words, ","); word; word = strtok(nullptr, ","))
        cuptiActivityEnable(static_cast<CUpti_ActivityKind>(atoi(word)));
    if (getenv("NULL_BACKTRACE")) watch_launches(launched, true, false);
    if (const char *which = getenv("NULL_CALLBACKS")) {
        auto watch = [which] { watch_launches(nothing, strcmp(which, "runtime") != 0, strcmp(which, "driver") != 0); };
        if (getenv("NULL_THREAD")) std::thread(watch).join();
        else watch();
    }
    return 1;
}
