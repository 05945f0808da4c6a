# SPDX-License-Identifier: Apache-2.0
"""A relay in front of a server that notes every request it passes on, whole.

Bytes go through untouched in both directions. Only requests with a
Content-Length or no body are understood, which is what both clients send.
With a certificate the relay speaks TLS to the client and plain text to the
server.
"""

import socket
import ssl
import threading


class Tap:
    def __init__(self, server_port: int, certificate: tuple[str, str] | None = None) -> None:
        self.server_port = server_port
        self.requests: list[dict] = []
        self.lock = threading.Lock()
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.relay_both, args=(client,), daemon=True).start()

    def relay_both(self, client: socket.socket) -> None:
        try:
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            server = socket.create_connection(("127.0.0.1", self.server_port))
        except OSError:
            client.close()
            return
        for a, b, reader in ((client, server, Reader(self)), (server, client, None)):
            a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.relay, args=(a, b, reader), daemon=True).start()

    def relay(self, source: socket.socket, sink: socket.socket, reader) -> None:
        try:
            while data := source.recv(1 << 16):
                if reader:
                    reader.feed(data)
                sink.sendall(data)
        except OSError:
            pass
        # A reset, too, must reach the other side; the end of either side ends both.
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self) -> list[dict]:
        self.listener.close()
        with self.lock:
            return list(self.requests)


class Reader:
    """Cuts one connection's bytes into requests, kept in the order of their heads."""

    def __init__(self, tap: Tap) -> None:
        self.tap, self.data, self.request, self.body_left = tap, b"", None, 0

    def feed(self, data: bytes) -> None:
        self.data += data
        while self.data:
            if self.request is None:
                if not self.head():
                    return
                continue
            part, self.data = self.data[:self.body_left], self.data[self.body_left:]
            self.request["body"] += part.decode("latin-1")
            self.body_left -= len(part)
            if self.body_left == 0:
                self.request = None

    def head(self) -> bool:
        head, end, rest = self.data.partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        fields = [tuple(x.split(":", 1)) for x in lines]
        fields = [(k, v.strip()) for k, v in fields]
        self.data = rest
        self.body_left = next((int(v) for k, v in fields if k.lower() == "content-length"), 0)
        request = {"method": method, "target": target, "fields": fields, "body": ""}
        with self.tap.lock:
            self.tap.requests.append(request)
        self.request = request if self.body_left else None
        return True
