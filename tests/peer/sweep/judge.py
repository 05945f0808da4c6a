# SPDX-License-Identifier: Apache-2.0
"""What the comparisons have in common."""

import math
import random
import socket
import time

NEAR = 1e-9
PORTS = (20000, 32000)


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def near(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or a == b or abs(a - b) <= NEAR * max(abs(a), abs(b))


class Counts(dict):
    """How much was compared."""

    def add(self, name: str, n: int) -> None:
        self[name] = self.get(name, 0) + n


def free_port() -> int:
    """One that the system gives to nobody by itself: upstream takes any answer for its server's."""
    while True:
        port = random.randrange(*PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


def wait_for_port(port: int) -> None:
    """Upstream kills its server and does not wait for the end."""
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return
        time.sleep(0.02)
