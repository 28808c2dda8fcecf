// Graphs whose order is known: every kernel has a grid of its own, so that a trace can be held against it.
//
//   graphs          launches a captured graph (three branches, one with a set, a copy and a function of the host), then one
//                   that holds it as a graph within the graph, then a copy of that, between kernels on the same stream
//   graphs forever  again and again, each made ready anew, with copies that come and go, until killed
#include <cstring>
#include <unistd.h>


#include "check.h"

__global__ void spin(long ticks) {
    long start = clock64();
    while (clock64() - start < ticks) {}
}

static void CUDART_CB nothing(void *) {}

static cudaStream_t streams[3];
static cudaEvent_t forked, joined[2];

static cudaGraph_t captured() {
    static int *device, *host;
    CHECK(cudaMalloc(&device, 4096));
    CHECK(cudaMallocHost(&host, 4096));
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
    spin<<<1, 1, 0, streams[0]>>>(100000);
    CHECK(cudaEventRecord(forked, streams[0]));
    for (int i = 1; i < 3; i++) CHECK(cudaStreamWaitEvent(streams[i], forked));
    spin<<<2, 1, 0, streams[0]>>>(200000);
    spin<<<3, 1, 0, streams[1]>>>(150000);
    CHECK(cudaMemsetAsync(device, 0, 4096, streams[2]));
    CHECK(cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, streams[2]));
    CHECK(cudaLaunchHostFunc(streams[2], nothing, nullptr));
    spin<<<4, 1, 0, streams[2]>>>(150000);
    for (int i = 1; i < 3; i++) {
        CHECK(cudaEventRecord(joined[i - 1], streams[i]));
        CHECK(cudaStreamWaitEvent(streams[0], joined[i - 1]));
    }
    spin<<<5, 1, 0, streams[0]>>>(100000);
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    return graph;
}

// Two kernels, nothing, a kernel, the other graph, a kernel that also waits for the first.
static cudaGraph_t by_hand(cudaGraph_t inner) {
    cudaGraph_t graph;
    cudaGraphNode_t nodes[5], none, child;
    CHECK(cudaGraphCreate(&graph, 0));
    auto kernel = [&](cudaGraphNode_t *node, int grid, const cudaGraphNode_t *before, size_t count) {
        long ticks = 100000;
        void *arguments[] = {&ticks};
        cudaKernelNodeParams parameters = {};
        parameters.func = (void *)spin;
        parameters.gridDim = dim3(grid);
        parameters.blockDim = dim3(1);
        parameters.kernelParams = arguments;
        CHECK(cudaGraphAddKernelNode(node, graph, before, count, &parameters));
    };
    kernel(&nodes[0], 11, nullptr, 0);
    kernel(&nodes[1], 12, nullptr, 0);
    CHECK(cudaGraphAddEmptyNode(&none, graph, nodes, 2));
    kernel(&nodes[2], 13, &none, 1);
    CHECK(cudaGraphAddChildGraphNode(&child, graph, &nodes[2], 1, inner));
    cudaGraphNode_t before[] = {child, nodes[0]};
    kernel(&nodes[3], 14, before, 2);
    return graph;
}

int main(int count, char **arguments) {
    for (auto &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    for (auto &event : joined) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaGraph_t inner = captured(), outer = by_hand(inner), copy;
    CHECK(cudaGraphClone(&copy, outer));
    auto run = [&](cudaGraph_t graph, int launches) {
        cudaGraphExec_t executable;
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int i = 0; i < launches; i++) {
            spin<<<20, 1, 0, streams[0]>>>(50000);
            CHECK(cudaGraphLaunch(executable, streams[0]));
        }
        CHECK(cudaStreamSynchronize(streams[0]));
        CHECK(cudaGraphExecDestroy(executable));
    };
    if (count > 1 && strcmp(arguments[1], "forever") == 0) {
        for (long round = 0;; round++) {
            for (cudaGraph_t graph : {inner, outer, copy}) run(graph, 1);
            if (round == 0) puts("begun");
            fflush(stdout);
            CHECK(cudaGraphDestroy(copy));
            CHECK(cudaGraphClone(&copy, outer));
            usleep(500);
        }
    }
    for (cudaGraph_t graph : {inner, outer, copy}) run(graph, 3);
    printf("9 launches\n");
}
