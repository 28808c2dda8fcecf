"""One comparison over several days' runs: the sets of processes of all of them, from the tables in bench/results.

    pool.py WORDS TABLE...      WORDS are in the comparison's name, as "standard against Triton Proton"

Processes differ from one another by more than what is asked for, so a run of some sets says little by itself.
"""

import re
import statistics
import sys
from pathlib import Path

import redrawn

words, tables = sys.argv[1], sys.argv[2:]
sets = []
for table in tables:
    for line in Path(table).read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and words in cells[2] and cells[2].endswith("; each set"):
            each = [float(percent) for percent in re.findall(r"[-+][0-9.]+", cells[3].rpartition(";")[2])]
            print(f"{table}: {len(each)} sets, median {statistics.median(each):+.1f} %")
            sets += each
if not sets:
    sys.exit(f"no sets of {words!r}")
low, high = redrawn.interval(sets, 10_000)
margin = 1.96 * statistics.stdev(sets) / len(sets) ** 0.5
print(f"{words}: {len(sets)} sets, median {statistics.median(sets):+.1f} % (95 % of redrawn sets: {low:+.1f} to {high:+.1f}), mean {statistics.mean(sets):+.1f} % (95 %: {statistics.mean(sets) - margin:+.1f} to {statistics.mean(sets) + margin:+.1f}), below 0 in {sum(each < 0 for each in sets)}")
