from torch.autograd import profiler
