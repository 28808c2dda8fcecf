// A window of work to record and run again: `streams`, or with a planted fault `atomics`, `fresh` or `race`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include "../check.h"

const int COUNT = 1 << 20;
const int BLOCK = 256;
const int GRID = COUNT / BLOCK;

__device__ float scale = 1.0f;
__constant__ float offsets[4];

__global__ void fill(float *out, unsigned seed) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = (i + 1) * 2654435761u + seed;
    x ^= x >> 15;
    out[i] = (float)(x & 0xffff) / 4096.0f + offsets[i & 3] * scale;
}

__global__ void add(float *out, const float *a, const float *b, float factor) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i] * factor * scale;
}

__global__ void rescale(float by) { scale *= by; }

// Follows a table of pointers, as a multi-tensor optimiser does.
__global__ void scatter(float *const *tables, int tables_count, float by) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int t = 0; t < tables_count; t++) tables[t][i] = tables[t][i] * by + t;
}

// The order in which the additions happen is nobody's: the sum's last bits differ.
__global__ void atomic_sum(float *sum, const float *values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sum, values[i] * 1.0001f);
}

__global__ void copy_fresh(float *out, const float *fresh) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = fresh[i] + 1.0f;
}

__global__ void slow_fill(float *out, float value, long long cycles) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
    out[i] = value;
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "streams";
    const size_t bytes = COUNT * sizeof(float);
    float *a, *b, *c, *sum;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&c, bytes));
    CHECK(cudaMalloc(&sum, 256));
    float constants[4] = {0.5f, 0.25f, 0.125f, 2.0f};
    CHECK(cudaMemcpyToSymbol(offsets, constants, sizeof constants));
    std::vector<float> host(COUNT);
    for (int i = 0; i < COUNT; i++) host[i] = (float)((i % 1013 * 7919) % 1013) / 17.0f;
    CHECK(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
    fill<<<GRID, BLOCK>>>(b, 3);
    rescale<<<1, 1>>>(1.5f);
    CHECK(cudaMemset(c, 0, bytes));
    CHECK(cudaMemset(sum, 0, 256));
    float *pinned;
    CHECK(cudaMallocHost(&pinned, bytes));
    memcpy(pinned, host.data(), bytes);
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaEvent_t ready, done;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaProfilerStart());
    if (!strcmp(which, "streams")) {
        float *fresh, *pooled, **tables;
        CHECK(cudaMemcpyAsync(c, pinned, bytes, cudaMemcpyHostToDevice, first));
        for (int i = 0; i < 20; i++) {
            fill<<<GRID, BLOCK, 0, first>>>(a, i);
            CHECK(cudaEventRecord(ready, first));
            CHECK(cudaStreamWaitEvent(second, ready, 0));
            add<<<GRID, BLOCK, 0, second>>>(c, c, a, 0.5f + i);
            rescale<<<1, 1, 0, second>>>(0.99f);
            CHECK(cudaEventRecord(done, second));
            CHECK(cudaStreamWaitEvent(first, done, 0));
        }
        CHECK(cudaMalloc(&fresh, bytes));
        CHECK(cudaMallocAsync(&pooled, bytes, second));
        CHECK(cudaMemsetAsync(pooled, 0, bytes, second));
        add<<<GRID, BLOCK, 0, second>>>(fresh, c, a, 2.0f);
        CHECK(cudaMalloc(&tables, 3 * sizeof(float *)));
        float *list[3] = {fresh, c, pooled};
        CHECK(cudaMemcpyAsync(tables, list, sizeof list, cudaMemcpyHostToDevice, second));
        scatter<<<GRID, BLOCK, 0, second>>>(tables, 3, 0.75f);
        CHECK(cudaMemcpyAsync(b, pooled, bytes, cudaMemcpyDeviceToDevice, second));
        CHECK(cudaFreeAsync(pooled, second));
        CHECK(cudaMemcpyAsync(pinned, c, bytes, cudaMemcpyDeviceToHost, second));
    } else if (!strcmp(which, "atomics")) {
        fill<<<GRID, BLOCK, 0, first>>>(a, 5);
        add<<<GRID, BLOCK, 0, first>>>(c, a, b, 0.5f);
        atomic_sum<<<GRID, BLOCK, 0, first>>>(sum, c);
        fill<<<GRID, BLOCK, 0, first>>>(b, 6);
    } else if (!strcmp(which, "fresh")) {
        float *fresh;
        fill<<<GRID, BLOCK, 0, first>>>(a, 5);
        CHECK(cudaMalloc(&fresh, bytes));
        copy_fresh<<<GRID, BLOCK, 0, first>>>(b, fresh);
        fill<<<GRID, BLOCK, 0, first>>>(a, 7);
    } else if (!strcmp(which, "race")) {
        fill<<<GRID, BLOCK, 0, first>>>(a, 5);
        CHECK(cudaEventRecord(ready, first));
        CHECK(cudaStreamWaitEvent(second, ready, 0));
        slow_fill<<<GRID, BLOCK, 0, first>>>(a, 3.0f, 2000);
        // Here a wait for what the first stream does is missing.
        add<<<GRID, BLOCK, 0, second>>>(c, a, b, 0.5f);
    } else {
        fprintf(stderr, "streams, atomics, fresh or race, not %s\n", which);
        return 1;
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
    puts("done");
}
