/* Launches through 50 known paths: `paths PLUGIN BARE_PLUGIN [ROUNDS]`. Prints, for each, its number and the functions
 * on the way, the innermost first; the number is also the number of blocks of the launch, so that a kernel's stack can be
 * held against the line. Built with optimisation and without frame pointers. */
#include "driver.h"

#include <string>

/* Kept as it is written: not inlined, not copied, and not looked into. */
#define PLAIN __attribute__((noipa))
/* A call is followed by something, so that it is not turned into a jump. */
#define STAYS asm volatile("" ::: "memory")

static CUfunction noop;
static int rounds = 1;

static void say(int path, const std::string &functions) {
    if (rounds == 1)
        printf("%d leaf,%s\n", path, functions.c_str());
}

PLAIN void leaf(int path) {
    launch(noop, (unsigned)path, 32, NULL, NULL);
    STAYS;
}

PLAIN void recurse(int path, int depth) {
    if (depth == 1)
        leaf(path);
    else
        recurse(path, depth - 1);
    STAYS;
}

__attribute__((always_inline)) static inline void inlined_inner(int path) {
    leaf(path);
    STAYS;
}

__attribute__((always_inline)) static inline void inlined_middle(int path) {
    inlined_inner(path + 0);
    STAYS;
}

template <int NUMBER> PLAIN void around_inlined(int path) {
    inlined_middle(path);
    STAYS;
}

PLAIN void after_jump(int path) {
    leaf(path);
    STAYS;
}

/* Its call is the last thing that it does: it leaves no frame. */
PLAIN void jumps(int path) { after_jump(path); }

template <int NUMBER> PLAIN void before_jump(int path) {
    jumps(path);
    STAYS;
}

template <class Function> PLAIN void call_with(Function function, int path) {
    function(path);
    STAYS;
}

template <int NUMBER> PLAIN void makes_lambda(int path) {
    int captured = NUMBER;
    call_with([captured](int path) __attribute__((noinline)) {
        leaf(path);
        asm volatile("" ::"r"(captured) : "memory");
    }, path);
    STAYS;
}

namespace shapes {
struct Shape {
    virtual void draw(int path) = 0;
    virtual ~Shape() {}
};

template <int NUMBER> struct Polygon : Shape {
    PLAIN void draw(int path) override {
        leaf(path);
        STAYS;
    }
};
} // namespace shapes

PLAIN void draws(shapes::Shape &shape, int path) {
    shape.draw(path);
    STAYS;
}

extern "C" PLAIN void called_back(int path) {
    leaf(path);
    STAYS;
}

typedef void (*PluginEntry)(int path, int depth, void (*back)(int));

static PluginEntry plugin_entry(const char *file) {
    void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "failed dlopen %s\n", dlerror());
        exit(2);
    }
    return (PluginEntry)dlsym(plugin, "plugin_entry");
}

PLAIN void through_plugin(PluginEntry entry, int path, int depth) {
    entry(path, depth, called_back);
    STAYS;
}

static std::string repeated(const char *function, int times) {
    std::string text;
    for (int i = 0; i < times; i++)
        text += std::string(function) + ",";
    return text;
}

PLAIN void all_paths(PluginEntry plugin, PluginEntry bare) {
    int path = 0;
    for (int depth = 1; depth <= 10; depth++) {
        say(++path, repeated("recurse", depth) + "all_paths,main");
        recurse(path, depth);
    }
#define FIVE(X) X(1) X(2) X(3) X(4) X(5)
#define INLINED(number)                                                                        \
    say(++path, "inlined_inner,inlined_middle,around_inlined<" #number ">,all_paths,main");     \
    around_inlined<number>(path);
    FIVE(INLINED)
#define JUMP(number)                                                                           \
    say(++path, "after_jump,before_jump<" #number ">,all_paths,main");                          \
    before_jump<number>(path);
    FIVE(JUMP)
#define LAMBDA(number)                                                                         \
    say(++path, "lambda,call_with,makes_lambda<" #number ">,all_paths,main");                   \
    makes_lambda<number>(path);
    FIVE(LAMBDA)
#define SHAPE(number) {                                                                        \
    say(++path, "shapes::Polygon<" #number ">::draw,draws,all_paths,main");                     \
    shapes::Polygon<number> polygon;                                                           \
    draws(polygon, path);                                                                      \
}
    FIVE(SHAPE)
    for (int depth = 1; depth <= 10; depth++) {
        say(++path, "called_back," + repeated("plugins::plugin_inner", depth) + "plugin_entry,through_plugin,all_paths,main");
        through_plugin(plugin, path, depth);
    }
    for (int depth = 1; depth <= 10; depth++) {
        say(++path, "called_back," + repeated("bare_inner", depth) + "plugin_entry,through_plugin,all_paths,main");
        through_plugin(bare, path, depth);
    }
    STAYS;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: paths PLUGIN BARE_PLUGIN [ROUNDS]\n");
        return 64;
    }
    start_device();
    noop = kernel("noop");
    rounds = count > 3 ? atoi(arguments[3]) : 1;
    PluginEntry plugin = plugin_entry(arguments[1]), bare = plugin_entry(arguments[2]);
    for (int round = 0; round < rounds; round++)
        all_paths(plugin, bare);
    CHECK(cuCtxSynchronize());
    return 0;
}
