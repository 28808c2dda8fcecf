// What CUPTI makes of callbacks and kinds that are switched while a program is at work: a client of its own, and a thread
// that launches all the time.
//
//   switching graph|kernel CALLBACKS kinds|callbacks inside|outside stay|leave WINDOWS
//
// A window switches on callbacks of the launching function (CALLBACKS: none, driver, runtime or both) and records of
// kernels, and switches them off again, kinds or callbacks first. Callbacks are always switched off while the thread is in
// no call, kinds so too or within a launch; the client then stays or leaves. It prints in how many windows a kind was
// switched off within a launch, how many launches and kernels were recorded, in how many windows more kernels than a launch
// has had one correlation, and how many beginnings and ends of launches were told behind the first window.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include <cupti.h>

#include "check.h"

#define CUPTI_CHECK(call)                                                            \
    do {                                                                             \
        CUptiResult status = (call);                                                 \
        if (status != CUPTI_SUCCESS) {                                               \
            fprintf(stderr, "%s: %d\n", #call, static_cast<int>(status));            \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static constexpr int nodes = 400;
static constexpr auto open_for = std::chrono::milliseconds(15), between = std::chrono::milliseconds(10);

// The launching thread holds it while it is in a call, and lets who wants it go first.
static struct Gate {
    std::mutex held;
    std::atomic<int> wanted;
    void lock() {
        wanted++;
        held.lock();
        wanted--;
    }
    void unlock() { held.unlock(); }
} outside;
static std::atomic<bool> is_inside, is_over;

// A call of the launching thread.
template <typename Call> static void in_turn(Call call) {
    while (outside.wanted) std::this_thread::yield();
    std::lock_guard<std::mutex> lock(outside.held);
    call();
}
static std::atomic<uint64_t> begun, ended;

static std::mutex guard;
static std::map<uint32_t, uint64_t> kernels;  // by correlation, in this window

__global__ void nothing() {}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
    *records = 0;
    *size = 1 << 20;
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, *size));
}

static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    std::lock_guard<std::mutex> lock(guard);
    CUpti_Activity *record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        // The correlation lies alike in all versions of the record since CUDA 7.
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            kernels[reinterpret_cast<CUpti_ActivityKernel4 *>(record)->correlationId]++;
    }
    free(buffer);
}

static void CUPTIAPI called(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
    bool begins = static_cast<const CUpti_CallbackData *>(data)->callbackSite == CUPTI_API_ENTER;
    (begins ? begun : ended)++;
}

static void launch_forever(bool graphs) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < nodes; i++) nothing<<<1, 1, 0, stream>>>();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    while (!is_over) {
        in_turn([&] {
            is_inside = true;
            if (graphs)
                CHECK(cudaGraphLaunch(executable, stream));
            else
                nothing<<<1, 1, 0, stream>>>();
            is_inside = false;
        });
        in_turn([&] { CHECK(cudaStreamSynchronize(stream)); });
    }
}

int main(int count, char **words) {
    if (count != 7) {
        fprintf(stderr, "usage: switching graph|kernel CALLBACKS kinds|callbacks inside|outside stay|leave WINDOWS\n");
        return 64;
    }
    bool graphs = !strcmp(words[1], "graph"), kinds_first = !strcmp(words[3], "kinds");
    bool within = !strcmp(words[4], "inside"), leaves = !strcmp(words[5], "leave");
    std::string which = words[2];
    int windows = atoi(words[6]);
    uint32_t driver = graphs ? CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch : CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    uint32_t driver_too = graphs ? driver : CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx;
    uint32_t runtime = graphs ? CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000 : CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    CUPTI_CHECK(cuptiActivityRegisterCallbacks(requested, completed));
    CUpti_SubscriberHandle subscriber;
    CUPTI_CHECK(cuptiSubscribe(&subscriber, called, nullptr));
    auto switch_callbacks = [&](uint32_t on) {
        if (which == "driver" || which == "both") {
            CUPTI_CHECK(cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, driver));
            CUPTI_CHECK(cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, driver_too));
        }
        if (which == "runtime" || which == "both")
            CUPTI_CHECK(cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, runtime));
    };
    int hits = 0;
    auto kinds_off = [&] {
        if (!within) {
            std::lock_guard<Gate> lock(outside);
            CUPTI_CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
            return;
        }
        while (is_inside) {}
        while (!is_inside) {}
        CUPTI_CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        hits += is_inside;
    };
    auto callbacks_off = [&] {
        std::lock_guard<Gate> lock(outside);
        switch_callbacks(0);
    };
    std::thread launcher(launch_forever, graphs);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    uint64_t launches = 0, all = 0, most = graphs ? nodes : 1;
    int wrong = 0, first_wrong = 0;
    for (int window = 1; window <= windows; window++) {
        {
            std::lock_guard<Gate> lock(outside);
            switch_callbacks(1);
            CUPTI_CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        }
        std::this_thread::sleep_for(open_for);
        if (kinds_first) {
            kinds_off();
            callbacks_off();
        } else {
            callbacks_off();
            kinds_off();
        }
        std::this_thread::sleep_for(between);
        CUPTI_CHECK(cuptiActivityFlushAll(0));
        if (leaves) {
            std::lock_guard<Gate> lock(outside);
            CUPTI_CHECK(cuptiUnsubscribe(subscriber));
            CUPTI_CHECK(cuptiSubscribe(&subscriber, called, nullptr));
        }
        std::lock_guard<std::mutex> lock(guard);
        bool is_wrong = false;
        for (auto [correlation, how_many] : kernels) {
            launches++;
            all += how_many;
            is_wrong |= how_many > most;
        }
        wrong += is_wrong;
        if (is_wrong && !first_wrong) first_wrong = window;
        kernels.clear();
        if (window == 1) begun = ended = 0;
    }
    is_over = true;
    launcher.join();
    printf("inside %d launches %lu kernels %lu wrong %d first %d begun %lu ended %lu\n", hits, launches, all, wrong, first_wrong,
           begun.load(), ended.load());
}
