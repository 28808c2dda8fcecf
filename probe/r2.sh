set -u
T=target/release/tracesmith
W=/tmp/w; mkdir -p $W
PY=$(python3 -c 'import torch' 2>/dev/null && echo python3 || ls /opt/*/bin/python3 | head -1)
echo "python $PY"
nvcc -arch=sm_90 -O2 -o $W/streams bench/gpu/replay/streams.cu || exit 1
rec() { # name, command...
  n=$1; shift
  /usr/bin/time -f "  record %es %MKB" $T profile --force --record --capture-range cuda-profiler-api -o $W/$n.sbt -- "$@" > $W/$n.rec 2>&1
  echo "== $n rc=$? size=$(stat -c %s $W/$n.sbt 2>/dev/null)"; tail -6 $W/$n.rec
}
rep() { n=$1; shift; timeout 60 $T replay $W/$n.sbt "$@" > $W/$n.out 2>&1; echo "-- replay $n $* rc=$?"; tail -${LINES_SHOWN:-6} $W/$n.out; }
for c in streams atomics fresh race; do
  rec $c $W/streams $c; rep $c --repeat 3; rep $c --check determinism --repeat 3
done
rep streams --mode timing --repeat 20
for c in train graph triton matmul convolution attention; do
  rec $c $PY bench/gpu/replay/steps.py $c; rep $c --repeat 3; rep $c --mode dry-run
done
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True rec expandable $PY bench/gpu/replay/steps.py train; rep expandable --repeat 3
PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync rec pool $PY bench/gpu/replay/steps.py train; rep pool --repeat 3
rep train --check determinism --repeat 2
rep graph --check determinism --repeat 2
LINES_SHOWN=40 rep graph --mode timing --repeat 20
# the same work, measured by ourselves while it is replayed
$T profile --force -o $W/again.sbt -- $T replay $W/train.sbt --repeat 5 > $W/again.out 2>&1; tail -8 $W/again.out
$T analyze $W/train.sbt > $W/train.an 2>&1; head -40 $W/train.an
$T analyze $W/again.sbt > $W/again.an 2>&1; head -40 $W/again.an
nvidia-smi --query-gpu=clocks.sm,clocks.mem,clocks.max.sm --format=csv
cd $W; tar czf $OUT/r2.tgz *.rec *.out *.an
