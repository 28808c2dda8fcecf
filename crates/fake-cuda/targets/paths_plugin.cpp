/* A library that `paths` loads: calls itself some times, then back. */
#define PLAIN __attribute__((noipa))
#define STAYS asm volatile("" ::: "memory")

namespace plugins {
PLAIN void plugin_inner(int path, int depth, void (*back)(int)) {
    if (depth == 1)
        back(path);
    else
        plugin_inner(path, depth - 1, back);
    STAYS;
}
} // namespace plugins

extern "C" PLAIN void plugin_entry(int path, int depth, void (*back)(int)) {
    plugins::plugin_inner(path, depth, back);
    STAYS;
}
