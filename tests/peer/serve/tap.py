# SPDX-License-Identifier: Apache-2.0
"""A relay in front of a server that notes the head of every request it passes on.

Bytes go through untouched in both directions. Only requests with a
Content-Length or no body are understood, which is what both clients send.
"""

import socket
import threading


class Tap:
    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.heads: list[dict] = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.server_port))
            for a, b, reader in ((client, server, Reader(self)), (server, client, None)):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.relay, args=(a, b, reader), daemon=True).start()

    def relay(self, source: socket.socket, sink: socket.socket, reader) -> None:
        try:
            while data := source.recv(1 << 16):
                if reader:
                    reader.feed(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stop(self) -> list[dict]:
        self.listener.close()
        with self.lock:
            return list(self.heads)


class Reader:
    """Cuts one connection's bytes into requests."""

    def __init__(self, tap: Tap) -> None:
        self.tap, self.data, self.body_left = tap, b"", 0

    def feed(self, data: bytes) -> None:
        self.data += data
        while self.data:
            taken = min(self.body_left, len(self.data))
            self.data, self.body_left = self.data[taken:], self.body_left - taken
            head, end, rest = self.data.partition(b"\r\n\r\n")
            if self.body_left or not end:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            fields = [tuple(x.split(": ", 1)) for x in lines]
            lengths = [int(x) for k, x in fields if k.lower() == "content-length"]
            self.data, self.body_left = rest, lengths[0] if lengths else 0
            with self.tap.lock:
                self.tap.heads.append({"method": method, "target": target, "fields": fields})
