"""Runs cases in the interpreter under test, and says how many stacks they compared.

    python cases.py LIBRARY CASE...
"""

import sys

import of_code
import of_process
import probe


def main():
    for name in sys.argv[2:]:
        module = next(module for module in (of_code, of_process) if hasattr(module, "case_" + name))
        getattr(module, "case_" + name)()
        print(name)
    print("ok", probe.compared[0])


if __name__ == "__main__":
    main()
