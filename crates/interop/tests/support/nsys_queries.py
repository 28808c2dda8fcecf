"""Queries that scripts for nsys exports commonly make, on the file that is named; prints their answers.

Uses nothing but Python's own sqlite3, as such scripts do.
"""

import json
import sqlite3
import sys

connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
columns = {row[1] for row in connection.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")}
same_process = "AND k.globalPid = (r.globalTid & ~0xFFFFFF)" if "globalPid" in sys.argv[2:] else ""


def rows(sql):
    return [list(row) for row in connection.execute(sql)]


answers = {
    # As gpukernsum does: where the GPU's time went.
    "kernels": rows(
        """SELECT s.value, COUNT(*), SUM(k.end - k.start), MIN(k.end - k.start), MAX(k.end - k.start)
           FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName
           GROUP BY s.value ORDER BY 3 DESC, 1"""
    ),
    "demangled": rows(
        """SELECT s.value, COUNT(*), SUM(k.end - k.start), k.gridX, k.gridY, k.blockX
           FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
           GROUP BY s.value, k.gridX, k.gridY, k.blockX ORDER BY 3 DESC, 1, 4, 5, 6"""
    ),
    # As cudaapisum does.
    "calls": rows(
        """SELECT s.value, COUNT(*), SUM(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
           JOIN StringIds s ON s.id = r.nameId GROUP BY s.value ORDER BY 3 DESC, 1"""
    ),
    # Which call launched which kernel, and how long it took to begin.
    "launches": rows(
        f"""SELECT r.start, k.start - r.start, k.end, s.value, n.value
            FROM CUPTI_ACTIVITY_KIND_KERNEL k
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId {same_process}
            JOIN StringIds s ON s.id = r.nameId JOIN StringIds n ON n.id = k.shortName
            ORDER BY 1, 2, 3, 4, 5"""
    ),
}
if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables and "ENUM_CUDA_MEMCPY_OPER" in tables:
    answers["copies"] = rows(
        """SELECT e.label, COUNT(*), SUM(m.bytes), SUM(m.end - m.start) FROM CUPTI_ACTIVITY_KIND_MEMCPY m
           JOIN ENUM_CUDA_MEMCPY_OPER e ON e.id = m.copyKind GROUP BY e.label ORDER BY 1"""
    )
if "NVTX_EVENTS" in tables:
    # As nvtxppsum does.
    answers["ranges"] = rows(
        """SELECT COALESCE(e.text, s.value), COUNT(*), SUM(e.end - e.start), MAX(e.end) FROM NVTX_EVENTS e
           LEFT JOIN StringIds s ON s.id = e.textId WHERE e.eventType = 59 GROUP BY 1 ORDER BY 1"""
    )
print(json.dumps(answers))
