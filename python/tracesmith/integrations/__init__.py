"""TraceSmith in other frameworks: `integrations.transformers` and `integrations.lightning`.

Importing one of them does not import its framework, unless it must be a subclass.
"""
