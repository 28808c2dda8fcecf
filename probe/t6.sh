set -u
P=/tmp/p; mkdir -p $P; T=target/release/tracesmith
nvcc -O2 -arch=sm_90 -o $P/textures bench/gpu/replay/textures.cu || exit 1
cc -O2 -o $P/windows crates/fake-cuda/targets/windows.c -ldl || exit 1
rec() { n=$1; shift; $T profile --force --record --capture-range cuda-profiler-api -o $P/$n.sbt -- "$@" 2>&1 | tail -5; }
rep() { n=$1; shift; timeout 60 $T replay $P/$n.sbt "$@" 2>&1 | tail -${L:-8}; echo "-- $n $* rc ${PIPESTATUS[0]}"; }
(
eval $($T env | grep -E "^export" )
for c in counting looking; do
  $P/windows $c > /dev/null & pid=$!; sleep 2
  (env -u LD_PRELOAD -u CUDA_INJECTION64_PATH -u TRACESMITH_ARMED $T record --pid $pid -d 0.2 --record --force -o $P/late-$c.sbt > $P/rec.txt 2>&1) & r=$!; sleep 4
  if kill -0 $r 2>/dev/null; then echo HUNG; for t in /proc/$pid/task/*; do echo $(cat $t/comm) $(cat $t/wchan) $(cat $t/syscall | cut -c1-40); done; env -u LD_PRELOAD -u CUDA_INJECTION64_PATH -u TRACESMITH_ARMED timeout 30 cuda-gdb -p $pid -batch -ex "thread apply all bt 24" 2>&1 | cut -c1-150 | tail -70; fi
  kill -9 $pid; wait $r; tail -4 $P/rec.txt
  (unset LD_PRELOAD CUDA_INJECTION64_PATH TRACESMITH_ARMED; rep late-$c --repeat 3)
done
)
$P/textures; rec textures $P/textures; rep textures --repeat 3; rep textures --check determinism;L=50 rep textures --mode dry-run
