# SPDX-License-Identifier: Apache-2.0
"""Stands in for a worker of ours: hands its descriptors to the comparison's process, which has the
engine's package already, and waits for the status of the worker that is forked there.

usage: relay.py SOCKET
"""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    worker = int(os.environ["PROFLLM_WORKER_FD"])
    socket.send_fds(s, [b"w"], [worker, 1, 2])
    os.close(worker)
    sys.exit(s.recv(1)[0])
