"""A process that an older version made attachable: it refuses every connection, and reads nothing after the greeting."""

import os
import socket
import struct
import sys

path = os.path.join(sys.argv[1], f"{os.getpid()}.sock")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(path)
os.chmod(path, 0o600)
listener.listen(4)
print(os.getpid(), flush=True)
reason = b"the other side speaks protocol version 2, this build speaks 1"
answer = struct.pack("<8sII24xI4x", b"TSANSWER", 1, 1, len(reason)) + reason
while True:
    connection, _ = listener.accept()
    if connection.recv(64):
        connection.send(answer.ljust(256, b"\0"))
    connection.close()
