// A kernel that calls device functions through addresses in memory: where code lies is not part of a recording.
#include <cstdio>
#include <cuda_profiler_api.h>

#include "../check.h"

typedef float (*Operation)(float, float);

__device__ float add(float a, float b) { return a + b; }
__device__ float multiply(float a, float b) { return a * b; }

__global__ void choose(Operation *table) {
    table[0] = add;
    table[1] = multiply;
}

__global__ void apply(const Operation *table, float *values, int count) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index] = table[index % 2](values[index], 1.5f);
}

int main() {
    const int count = 1 << 16;
    Operation *table;
    float *values, first[4];
    CHECK(cudaMalloc(&table, 2 * sizeof *table));
    CHECK(cudaMalloc(&values, count * sizeof *values));
    CHECK(cudaMemset(values, 0x3f, count * sizeof *values));
    choose<<<1, 1>>>(table);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    apply<<<count / 256, 256>>>(table, values, count);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
    CHECK(cudaMemcpy(first, values, sizeof first, cudaMemcpyDeviceToHost));
    printf("values %g %g\n", first[0], first[1]);
}
