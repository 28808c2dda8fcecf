"""One launch."""

from driver import blocks, check, launch, released, start

start()
check(launch(*blocks(1)))
check(released.cuCtxSynchronize())
