// Runs one recorded kernel launch and compares the resulting memory.
//
//   g++ -O2 -o reproduce reproduce.cpp -ldl && ./reproduce [FOLDER]
//
// Needs only the CUDA driver: no headers and no toolkit. Exit codes: 0 same, 1 differs, 2 failed.
#include <dlfcn.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

typedef std::vector<unsigned char> Bytes;

static void fail(const std::string &why) {
    std::fprintf(stderr, "failed: %s\n", why.c_str());
    std::exit(2);
}

static void *library;

template <typename F> static F function(const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        fail(std::string("the driver has no ") + name);
    return reinterpret_cast<F>(found);
}

static void check(int status, const char *what) {
    if (status == 0)
        return;
    const char *words = "";
    function<int (*)(int, const char **)>("cuGetErrorString")(status, &words);
    fail(std::string(what) + ": " + std::to_string(status) + " (" + (words ? words : "") + ")");
}

static Bytes contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        fail("cannot read " + path);
    return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

struct Range {
    uint64_t address;
    size_t bytes;
    bool host;
};

struct Memory {
    uint64_t address;
    std::string variable;
    size_t bytes;
    std::string before, after;
};

struct Attribute {
    unsigned id, padding;
    unsigned char value[64];
};

struct Config {
    unsigned grid[3], block[3], shared;
    void *stream;
    Attribute *attributes;
    unsigned attribute_count;
};

struct Properties {
    unsigned kind, handle_types, location_type;
    int location;
    void *windows;
    unsigned char flags[8];
};

struct Access {
    unsigned location_type;
    int location;
    unsigned flags;
};

struct Launch {
    std::string kernel;
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0;
    std::vector<std::pair<int, int>> sets;
    std::vector<Attribute> attributes;
    std::vector<Range> reserved, mapped;
    std::vector<Memory> memory;
};

static Launch read_launch(const std::string &path) {
    std::ifstream file(path);
    if (!file)
        fail("cannot read " + path);
    Launch launch;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string key, address, text;
        words >> key;
        if (key == "kernel") {
            words >> launch.kernel;
        } else if (key == "grid" || key == "block") {
            unsigned *sizes = key == "grid" ? launch.grid : launch.block;
            words >> sizes[0] >> sizes[1] >> sizes[2];
        } else if (key == "shared") {
            words >> launch.shared;
        } else if (key == "set") {
            int id = 0, value = 0;
            words >> id >> value;
            launch.sets.push_back({id, value});
        } else if (key == "attribute") {
            Attribute attribute = {};
            words >> attribute.id >> text;
            for (size_t i = 0; i < 64 && 2 * i + 1 < text.size(); i++)
                attribute.value[i] = (unsigned char)std::stoul(text.substr(2 * i, 2), nullptr, 16);
            launch.attributes.push_back(attribute);
        } else if (key == "reserve" || key == "map") {
            Range range = {};
            words >> address >> range.bytes >> text;
            range.address = std::stoull(address, nullptr, 16);
            range.host = text == "host";
            (key == "map" ? launch.mapped : launch.reserved).push_back(range);
        } else if (key == "buffer" || key == "variable") {
            Memory memory = {};
            words >> address >> memory.bytes >> memory.before >> memory.after;
            if (key == "buffer")
                memory.address = std::stoull(address, nullptr, 16);
            else
                memory.variable = address;
            launch.memory.push_back(memory);
        }
    }
    return launch;
}

static void map_memory(const Launch &launch, int device) {
    auto reserve = function<int (*)(uint64_t *, size_t, size_t, uint64_t, uint64_t)>("cuMemAddressReserve");
    auto create = function<int (*)(uint64_t *, size_t, const Properties *, uint64_t)>("cuMemCreate");
    auto map = function<int (*)(uint64_t, size_t, size_t, uint64_t, uint64_t)>("cuMemMap");
    auto allow = function<int (*)(uint64_t, size_t, const Access *, size_t)>("cuMemSetAccess");
    for (const Range &range : launch.reserved) {
        uint64_t got = 0;
        check(reserve(&got, range.bytes, 0, range.address, 0), "reserving addresses");
        if (got != range.address) {
            std::ostringstream why;
            why << "the addresses from 0x" << std::hex << range.address << " on are in use in this process";
            fail(why.str());
        }
    }
    for (const Range &range : launch.mapped) {
        /* Pinned memory; the device, or the host's first node. */
        Properties properties = {};
        properties.kind = 1;
        properties.location_type = range.host ? 3 : 1;
        properties.location = range.host ? 0 : device;
        uint64_t physical = 0;
        check(create(&physical, range.bytes, &properties, 0), "allocating memory");
        check(map(range.address, range.bytes, 0, physical, 0), "mapping memory");
        Access access[2] = {{1, device, 3}, {3, 0, 3}};
        check(allow(range.address, range.bytes, access, range.host ? 2 : 1), "setting access to memory");
    }
}

static void start(const Launch &launch, void *kernel, Bytes &parameters) {
    size_t size = parameters.size();
    void *extra[] = {(void *)1, parameters.data(), (void *)2, &size, nullptr};
    void **given = parameters.empty() ? nullptr : extra;
    auto set = function<int (*)(void *, int, int)>("cuFuncSetAttribute");
    for (auto &pair : launch.sets)
        set(kernel, pair.first, pair.second);
    const unsigned *grid = launch.grid, *block = launch.block;
    if (launch.attributes.empty()) {
        typedef int (*Plain)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                             void **, void **);
        check(function<Plain>("cuLaunchKernel")(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                                launch.shared, nullptr, nullptr, given),
              "launching");
        return;
    }
    std::vector<Attribute> attributes = launch.attributes;
    Config config = {{grid[0], grid[1], grid[2]},
                     {block[0], block[1], block[2]},
                     launch.shared,
                     nullptr,
                     attributes.data(),
                     (unsigned)attributes.size()};
    check(function<int (*)(const Config *, void *, void **, void **)>("cuLaunchKernelEx")(&config, kernel, nullptr,
                                                                                       given),
          "launching");
}

static int compare(const std::string &folder, const std::vector<Memory> &all) {
    auto copy = function<int (*)(void *, uint64_t, size_t)>("cuMemcpyDtoH_v2");
    size_t differing = 0, bytes = 0, compared = 0;
    for (const Memory &memory : all) {
        if (memory.after == "-")
            continue;
        compared++;
        Bytes expected = contents(folder + "/" + memory.after), found(memory.bytes);
        check(copy(found.data(), memory.address, memory.bytes), "reading memory");
        size_t count = 0, first = 0;
        for (size_t i = 0; i < memory.bytes; i++)
            if (expected[i] != found[i] && count++ == 0)
                first = i;
        bytes += memory.bytes;
        if (count) {
            differing++;
            std::printf("0x%llx: %zu of %zu bytes differ, first at offset %zu: expected %02x, found %02x\n",
                        (unsigned long long)memory.address, count, memory.bytes, first, expected[first], found[first]);
        }
    }
    if (differing) {
        std::printf("differs in %zu of %zu buffers\n", differing, compared);
        return 1;
    }
    if (compared < all.size()) {
        std::printf("ran: the expected results of %zu of %zu buffers are unknown\n", all.size() - compared, all.size());
        return 0;
    }
    std::printf("same (%zu buffers, %zu bytes)\n", compared, bytes);
    return 0;
}

int main(int count, char **arguments) {
    int persona = personality(0xffffffff);
    if (persona != -1 && !(persona & ADDR_NO_RANDOMIZE) && personality(persona | ADDR_NO_RANDOMIZE) != -1)
        execv("/proc/self/exe", arguments);
    std::string folder = count > 1 ? arguments[1] : ".";
    Launch launch = read_launch(folder + "/launch.txt");
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        fail(dlerror());
    int device = 0;
    void *context = nullptr, *module = nullptr, *kernel = nullptr;
    check(function<int (*)(unsigned)>("cuInit")(0), "initializing CUDA");
    check(function<int (*)(int *, int)>("cuDeviceGet")(&device, 0), "finding a device");
    check(function<int (*)(void **, int)>("cuDevicePrimaryCtxRetain")(&context, device), "creating a context");
    check(function<int (*)(void *)>("cuCtxSetCurrent")(context), "setting the context");
    map_memory(launch, device);
    Bytes code = contents(folder + "/kernel.cubin"), parameters = contents(folder + "/parameters.bin");
    code.push_back(0);
    check(function<int (*)(void **, const void *)>("cuModuleLoadData")(&module, code.data()), "loading the module");
    check(function<int (*)(void **, void *, const char *)>("cuModuleGetFunction")(&kernel, module,
                                                                                 launch.kernel.c_str()),
          "finding the kernel");
    for (Memory &memory : launch.memory) {
        size_t bytes = 0;
        if (!memory.variable.empty())
            check(function<int (*)(uint64_t *, size_t *, void *, const char *)>("cuModuleGetGlobal_v2")(
                      &memory.address, &bytes, module, memory.variable.c_str()),
                  "finding a module global");
        Bytes before = contents(folder + "/" + memory.before);
        check(function<int (*)(uint64_t, const void *, size_t)>("cuMemcpyHtoD_v2")(memory.address, before.data(),
                                                                                   before.size()),
              "writing memory");
    }
    start(launch, kernel, parameters);
    check(function<int (*)()>("cuCtxSynchronize")(), "running the kernel");
    return compare(folder, launch.memory);
}
