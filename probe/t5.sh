set -u
P=/tmp/p; mkdir -p $P; T=target/release/tracesmith
nvcc -O2 -arch=sm_90 -o $P/textures bench/gpu/replay/textures.cu || exit 1
nvcc -O2 -arch=sm_90 -rdc=true -o $P/device_launch bench/gpu/replay/device_launch.cu -lcudadevrt || exit 1
cc -O2 -o $P/windows crates/fake-cuda/targets/windows.c -ldl || exit 1
rec() { n=$1; shift; $T profile --force --record --capture-range cuda-profiler-api -o $P/$n.sbt -- "$@" 2>&1 | tail -5; }
rep() { n=$1; shift; timeout 60 $T replay $P/$n.sbt "$@" 2>&1 | tail -8; echo "-- $n $* rc ${PIPESTATUS[0]}"; }
$P/textures; rec textures $P/textures; rep textures --repeat 3; rep textures --check determinism; rep textures --mode dry-run
$P/device_launch; rec dl $P/device_launch; rep dl --repeat 3; rep dl --check determinism
for c in texture array variables; do $P/windows $c; rec $c $P/windows $c; rep $c --repeat 3; done
rep array --kernel paint#1 --mode timing --repeat 20
eval $($T env | grep -E "^export" )
for c in forever counting looking; do
  $P/windows $c > /dev/null & pid=$!; sleep 2
  $T record --pid $pid -d 0.2 --record --force -o $P/late-$c.sbt 2>&1 | tail -4; kill -9 $pid
  (unset LD_PRELOAD CUDA_INJECTION64_PATH TRACESMITH_ARMED; rep late-$c --repeat 3)
done
