// A window of kernels that read and write through textures and surfaces of every kind.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include "../check.h"

const int WIDTH = 96, HEIGHT = 40, DEPTH = 5, LEVELS = 4;
const int COUNT = WIDTH * HEIGHT;

__global__ void look_line(cudaTextureObject_t from, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex1Dfetch<float>(from, i);
}

// Filtered between four elements.
__global__ void look_plane(cudaTextureObject_t from, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex2D<float>(from, (i % WIDTH + 0.25f) / WIDTH, (i / WIDTH + 0.75f) / HEIGHT);
}

__global__ void look_solid(cudaTextureObject_t from, float *out, float z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex3D<float4>(from, i % WIDTH + 0.5f, i / WIDTH + 0.5f, z).y;
}

__global__ void look_layers(cudaTextureObject_t from, float *out, int layer) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex2DLayered<float>(from, i % WIDTH + 0.5f, i / WIDTH + 0.5f, layer);
}

__global__ void look_bits(cudaTextureObject_t from, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex2D<unsigned>(from, i % WIDTH + 0.5f, i / WIDTH + 0.5f) >> 20;
}

__global__ void look_levels(cudaTextureObject_t from, float *out, float level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] += tex2DLod<float>(from, (i % WIDTH + 0.5f) / WIDTH, (i / WIDTH + 0.5f) / HEIGHT, level);
}

// Handles that lie in memory.
__global__ void look_table(const cudaTextureObject_t *table, int count, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int t = 0; i < COUNT && t < count; t++) out[i] += tex1Dfetch<float>(table[t], i);
}

__global__ void paint(cudaSurfaceObject_t to, const float *from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) surf2Dwrite(from[i] * 0.5f, to, (i % WIDTH) * (int)sizeof(float), i / WIDTH);
}

static cudaTextureObject_t textured(const cudaResourceDesc &of, cudaTextureFilterMode filter, int normalized,
                                    const cudaResourceViewDesc *view = nullptr) {
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = how.mipmapFilterMode = filter;
    how.normalizedCoords = normalized;
    how.maxMipmapLevelClamp = LEVELS - 1;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &of, &how, view));
    return texture;
}

static cudaArray_t filled(cudaChannelFormatDesc format, int depth, unsigned flags, float first) {
    cudaArray_t array;
    size_t element = (format.x + format.y + format.z + format.w) / 8;
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(WIDTH, HEIGHT, depth), flags));
    std::vector<float> numbers(COUNT * (depth ? depth : 1) * element / sizeof(float));
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = first + i * 0.125f;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(numbers.data(), WIDTH * element, WIDTH, HEIGHT);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(WIDTH, HEIGHT, depth ? depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    return array;
}

static cudaResourceDesc in_array(cudaArray_t array) {
    cudaResourceDesc of = {};
    of.resType = cudaResourceTypeArray;
    of.res.array.array = array;
    return of;
}

int main() {
    float *line, *out, *rows;
    size_t pitch;
    CHECK(cudaMalloc(&line, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&out, COUNT * sizeof(float)));
    CHECK(cudaMallocPitch(&rows, &pitch, WIDTH * sizeof(float), HEIGHT));
    std::vector<float> numbers(COUNT);
    for (int i = 0; i < COUNT; i++) numbers[i] = 1.0f / (i + 1);
    CHECK(cudaMemcpy(line, numbers.data(), COUNT * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(rows, pitch, numbers.data(), WIDTH * sizeof(float), WIDTH * sizeof(float), HEIGHT,
                       cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, COUNT * sizeof(float)));

    cudaResourceDesc of_line = {}, of_rows = {}, of_levels = {};
    of_line.resType = cudaResourceTypeLinear;
    of_line.res.linear = {line, cudaCreateChannelDesc<float>(), COUNT * sizeof(float)};
    of_rows.resType = cudaResourceTypePitch2D;
    of_rows.res.pitch2D = {rows, cudaCreateChannelDesc<float>(), WIDTH, HEIGHT, pitch};
    cudaArray_t plane = filled(cudaCreateChannelDesc<float>(), 0, cudaArraySurfaceLoadStore, 3);
    cudaArray_t solid = filled(cudaCreateChannelDesc<float4>(), DEPTH, 0, 5);
    cudaArray_t layers = filled(cudaCreateChannelDesc<float>(), DEPTH, cudaArrayLayered, 7);
    cudaMipmappedArray_t levels;
    cudaChannelFormatDesc single = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocMipmappedArray(&levels, &single, make_cudaExtent(WIDTH, HEIGHT, 0), LEVELS));
    for (int level = 0; level < LEVELS; level++) {
        cudaArray_t of_level;
        CHECK(cudaGetMipmappedArrayLevel(&of_level, levels, level));
        std::vector<float> all((WIDTH >> level) * (HEIGHT >> level), 10.0f * level + 1);
        CHECK(cudaMemcpy2DToArray(of_level, 0, 0, all.data(), (WIDTH >> level) * sizeof(float),
                                  (WIDTH >> level) * sizeof(float), HEIGHT >> level, cudaMemcpyHostToDevice));
    }
    of_levels.resType = cudaResourceTypeMipmappedArray;
    of_levels.res.mipmap.mipmap = levels;

    cudaTextureObject_t at_line = textured(of_line, cudaFilterModePoint, 0);
    // One that goes before the window begins: its number is free in it.
    cudaTextureObject_t gone = textured(of_line, cudaFilterModePoint, 0);
    cudaTextureObject_t at_rows = textured(of_rows, cudaFilterModeLinear, 1);
    cudaTextureObject_t at_plane = textured(in_array(plane), cudaFilterModeLinear, 1);
    cudaTextureObject_t at_solid = textured(in_array(solid), cudaFilterModePoint, 0);
    cudaTextureObject_t at_layers = textured(in_array(layers), cudaFilterModePoint, 0);
    cudaTextureObject_t at_levels = textured(of_levels, cudaFilterModeLinear, 1);
    cudaResourceViewDesc part = {};
    part.format = cudaResViewFormatUnsignedInt1;
    part.width = WIDTH;
    part.height = HEIGHT;
    // As whole numbers, which the bits are too.
    cudaTextureObject_t at_part = textured(in_array(plane), cudaFilterModePoint, 0, &part);
    cudaSurfaceObject_t on_plane;
    cudaResourceDesc of_plane = in_array(plane);
    CHECK(cudaCreateSurfaceObject(&on_plane, &of_plane));
    CHECK(cudaDestroyTextureObject(gone));
    cudaTextureObject_t hidden = textured(of_line, cudaFilterModePoint, 0), *table;
    CHECK(cudaMalloc(&table, 2 * sizeof *table));
    cudaTextureObject_t handles[2] = {at_line, hidden};
    CHECK(cudaMemcpy(table, handles, sizeof handles, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());

    const int GRID = (COUNT + 127) / 128;
    CHECK(cudaProfilerStart());
    look_line<<<GRID, 128>>>(at_line, out);
    look_plane<<<GRID, 128>>>(at_rows, out);
    look_plane<<<GRID, 128>>>(at_plane, out);
    look_solid<<<GRID, 128>>>(at_solid, out, 2.5f);
    look_layers<<<GRID, 128>>>(at_layers, out, 4);
    look_bits<<<GRID, 128>>>(at_part, out);
    look_levels<<<GRID, 128>>>(at_levels, out, 1.5f);
    look_table<<<GRID, 128>>>(table, 2, out);
    // What one kernel paints the next one looks at, through a texture that is made in between.
    paint<<<GRID, 128>>>(on_plane, out);
    cudaTextureObject_t late = textured(in_array(plane), cudaFilterModePoint, 0);
    look_plane<<<GRID, 128>>>(late, out);
    CHECK(cudaMemcpy2DFromArrayAsync(line, WIDTH * sizeof(float), plane, 8 * sizeof(float), 4, 16 * sizeof(float), 3,
                                     cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy2DToArray(plane, 0, 0, numbers.data(), WIDTH * sizeof(float), WIDTH * sizeof(float), 7,
                              cudaMemcpyHostToDevice));
    // The handle may come again for something else.
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDestroyTextureObject(late));
    cudaTextureObject_t other = textured(of_line, cudaFilterModePoint, 0);
    look_line<<<GRID, 128>>>(other, out);
    look_plane<<<GRID, 128>>>(at_plane, out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());

    CHECK(cudaMemcpy(numbers.data(), out, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("textures %g %g\n", numbers[0], numbers[COUNT - 1]);
}
