#!/usr/bin/env python3
"""Makes the corpora of import_nsys and import_rocpd: tiny SQLite files with everything in them once.

Run from this folder: python3 sqlite_corpus.py
"""

import os
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
PID = 1 << 48 | 7 << 24
TID = PID | 9

NSYS = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1,'saxpy(float*)'),(2,'_Z5saxpyPf'),(3,'saxpy'),(4,'cudaLaunchKernel_v7000'),(5,'/lib/a.so');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, greenContextId INT, streamId INT,
 correlationId INT, globalPid INT, demangledName INT, shortName INT, mangledName INT, launchType INT, gridX INT, blockX INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100,200,0,1,0,7,5,:pid,1,3,2,1,2,64),(300,250,0,1,1,7,6,:pid,1,3,2,2,2,64);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
 globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT, migrationCause INT, copyCount INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (400,410,0,1,7,8,:pid,64,1,1,2,NULL,3),(420,430,0,1,7,8,:pid,64,11,NULL,NULL,2,1);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT, contextId INT, streamId INT,
 correlationId INT, globalPid INT, syncType INT, eventId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (500,510,0,1,4294967295,9,:pid,4,4294967295);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT,
 returnValue INT, callchainId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90,95,0,:tid,5,4,0,1),(-5,0,67,:tid,6,4,1,NULL);
CREATE TABLE CUDA_CALLCHAINS (id INT, symbol INT, module INT, originalIP INT, stackDepth INT);
INSERT INTO CUDA_CALLCHAINS VALUES (1,4,5,4096,0),(1,3,5,8192,1);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, rangeId INT, category INT, color INT, text TEXT, globalTid INT,
 textId INT, domainId INT, uint64Value INT, doubleValue REAL, jsonText TEXT);
INSERT INTO NVTX_EVENTS VALUES (1,NULL,75,0,0,0,'NCCL',:tid,NULL,1,NULL,NULL,NULL),
 (2,NULL,33,0,4,0,'io',:tid,NULL,1,NULL,NULL,NULL),(10,20,59,0,4,-1,'step',:tid,NULL,1,3,NULL,NULL),
 (11,NULL,60,8,0,0,NULL,:tid,3,0,NULL,1.5,'{}'),(12,NULL,34,0,0,0,'mark',:tid,NULL,0,NULL,NULL,NULL);
CREATE TABLE OSRT_API (start INT, end INT, globalTid INT, nameId INT, returnValue INT, nestingLevel INT, callchainId INT);
INSERT INTO OSRT_API VALUES (30,40,:tid,5,0,0,0);
CREATE TABLE COMPOSITE_EVENTS (id INT, start INT, cpu INT, globalTid INT, cpuCycles INT);
INSERT INTO COMPOSITE_EVENTS VALUES (1,60,2,:tid,1000);
CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value REAL);
INSERT INTO GPU_METRICS VALUES (70,1,0,99.5);
CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT);
INSERT INTO PROCESSES VALUES (:pid,7,'app'),(1,1,'init');
CREATE TABLE DIAGNOSTIC_EVENT (severity INT, text TEXT);
INSERT INTO DIAGNOSTIC_EVENT VALUES (3,'events were dropped'),(1,'hello');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
CREATE TABLE SOMETHING_NEW (a INT);
INSERT INTO SOMETHING_NEW VALUES (1),(2);
"""

WRONG = """
CREATE TABLE StringIds (id TEXT, value BLOB);
INSERT INTO StringIds VALUES ('x', x'ff00'), (NULL, NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, demangledName, gridX);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('a','b','c','d','e','f','g'),(NULL,NULL,NULL,NULL,NULL,NULL,NULL),
 (9223372036854775807,-9223372036854775808,-1,-1,-1,-1,1e300),(1.0,2.0,0.0,1.0,2.0,3.0,4.5);
CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start FROM n;
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end AS (start + 1), "quote""d" TEXT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start) VALUES (5);
"""

ROCPD = """
CREATE TABLE rocpd_metadata_a (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
INSERT INTO rocpd_metadata_a VALUES (1,'schema_version','3');
CREATE TABLE rocpd_string_a (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
INSERT INTO rocpd_string_a VALUES (1,'g','HIP_RUNTIME_API'),(2,'g','hipLaunchKernel'),(3,'g','MARKER_CORE_RANGE_API'),(4,'g','KERNEL_DISPATCH');
CREATE TABLE rocpd_info_node_a (id INTEGER PRIMARY KEY, hostname TEXT, machine_id TEXT);
INSERT INTO rocpd_info_node_a VALUES (1,'node1','m');
CREATE TABLE rocpd_info_process_a (id INTEGER PRIMARY KEY, nid INT, pid INT, command TEXT);
INSERT INTO rocpd_info_process_a VALUES (1,1,42,'app');
CREATE TABLE rocpd_info_thread_a (id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, name TEXT);
INSERT INTO rocpd_info_thread_a VALUES (1,1,1,43,'main');
CREATE TABLE rocpd_info_agent_a (id INTEGER PRIMARY KEY, nid INT, type TEXT, type_index INT, name TEXT);
INSERT INTO rocpd_info_agent_a VALUES (0,1,'CPU',0,'cpu'),(1,1,'GPU',0,'gfx942');
CREATE TABLE rocpd_info_kernel_symbol_a (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT);
INSERT INTO rocpd_info_kernel_symbol_a VALUES (1,'_Z5saxpyPf.kd','saxpy(float*)');
CREATE TABLE rocpd_info_pmc_a (id INTEGER PRIMARY KEY, agent_id INT, pid INT, name TEXT);
INSERT INTO rocpd_info_pmc_a VALUES (1,1,1,'SQ_WAVES');
CREATE TABLE rocpd_event_a (id INTEGER PRIMARY KEY, category_id INT, stack_id INT, extdata TEXT);
INSERT INTO rocpd_event_a VALUES (1,1,5,'{}'),(2,4,5,'{}'),(3,3,6,'{"message":"step"}'),(4,3,7,'{bad');
CREATE TABLE rocpd_region_a (id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, start INT, end INT, name_id INT, event_id INT);
INSERT INTO rocpd_region_a VALUES (1,1,1,1,100,110,2,1),(2,1,1,1,90,200,2,3),(3,1,1,1,90,80,2,4);
CREATE TABLE rocpd_kernel_dispatch_a (id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, agent_id INT, kernel_id INT,
 dispatch_id INT, queue_id INT, stream_id INT, start INT, end INT, workgroup_size_x INT, grid_size_x INT, event_id INT);
INSERT INTO rocpd_kernel_dispatch_a VALUES (1,1,1,1,1,1,1,1,0,120,150,64,1000,2);
CREATE TABLE rocpd_pmc_event_a (id INTEGER PRIMARY KEY, event_id INT, pmc_id INT, value REAL);
INSERT INTO rocpd_pmc_event_a VALUES (1,2,1,16.0);
CREATE TABLE rocpd_memory_copy_a (id INTEGER PRIMARY KEY, nid INT, pid INT, start INT, end INT, size INT, src_agent_id INT,
 dst_agent_id INT, stream_id INT, event_id INT);
INSERT INTO rocpd_memory_copy_a VALUES (1,1,1,160,170,4096,0,1,0,1);
CREATE TABLE rocpd_memory_allocate_a (id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, agent_id INT, type TEXT, level TEXT,
 start INT, size INT, address INT, event_id INT);
INSERT INTO rocpd_memory_allocate_a VALUES (1,1,1,1,1,'ALLOC','REAL',95,4096,65536,1);
CREATE TABLE rocpd_arg_a (id INTEGER PRIMARY KEY, event_id INT);
INSERT INTO rocpd_arg_a VALUES (1,1);
"""


def make(target, name, script, damage=None):
    path = os.path.join(HERE, "corpus", target, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.remove(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 512")
    connection.executescript(script.replace(":pid", str(PID)).replace(":tid", str(TID)))
    connection.commit()
    connection.execute("VACUUM")
    connection.close()
    if damage:
        with open(path, "rb") as file:
            content = damage(bytearray(file.read()))
        with open(path, "wb") as file:
            file.write(content)
    assert os.path.getsize(path) <= 16 << 10, (name, os.path.getsize(path))


def overwrite(at):
    def damage(content):
        content[at : at + 64] = b"\xff" * 64
        return content

    return damage


for target, script in [("import_nsys", NSYS), ("import_rocpd", ROCPD)]:
    make(target, "everything.sqlite", script)
    make(target, "truncated.sqlite", script, lambda content: content[: len(content) * 2 // 3])
    make(target, "damaged.sqlite", script, overwrite(6 << 10))
make("import_nsys", "wrong-types.sqlite", WRONG)
make("import_nsys", "something-else.sqlite", "CREATE TABLE notes (text TEXT)")
make("import_rocpd", "empty-tables.sqlite", "CREATE TABLE rocpd_string (id INT); CREATE TABLE rocpd_region (start TEXT)")
