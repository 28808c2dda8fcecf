_pre_hooks, _hooks = {}, {}


class _Handle:
    def __init__(self, hooks, hook):
        self.hooks = hooks
        hooks[id(self)] = hook

    def remove(self):
        del self.hooks[id(self)]


def register_module_forward_pre_hook(hook):
    return _Handle(_pre_hooks, hook)


def register_module_forward_hook(hook, *, always_call=False):
    assert always_call
    return _Handle(_hooks, hook)


class Module:
    def named_modules(self, prefix=""):
        yield prefix, self
        for name, part in vars(self).items():
            if isinstance(part, Module):
                yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def __call__(self, x):
        result = None
        try:
            for hook in list(_pre_hooks.values()):
                hook(self, (x,))
            result = self.forward(x)
        finally:
            for hook in list(_hooks.values()):
                hook(self, (x,), result)
        return result
