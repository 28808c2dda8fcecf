"""A stand-in for Lightning: the base class of profilers, and a loop that calls them as its Trainer does."""
