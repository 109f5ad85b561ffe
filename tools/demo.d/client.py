# SPDX-License-Identifier: BSD-3-Clause
"""The client of the live demo: it sends requests all the time, and counts who answers."""

import collections
import socket
import threading
import time

import network

N_SHORT = 4
SHORT_PAUSE_S = 0.02
N_DOWNLOADS = 10
# They begin one after the other, so that at any time some are young and some are nearly done.
DOWNLOAD_GAP_S = 1.0
PATIENCE_S = 20
# What is counted under no phase: requests during which the phase changed.
CHANGING = "while changing"


class Request:
    def __init__(self, path, phase):
        self.path = path
        self.phase = phase
        self.begun = time.monotonic()
        self.server = None


class Client:
    """Each request is a TCP connection of its own. All that is counted is under the lock."""

    def __init__(self, net):
        self.network = net
        self.lock = threading.Lock()
        self.phase = CHANGING
        self.is_over = threading.Event()
        self.running = set()
        self.n_begun = 0
        self.n_downloads = 0
        self.by_phase = collections.defaultdict(collections.Counter)
        self.failures = []
        self.threads = [threading.Thread(target=self.repeat, args=work, daemon=True)
                        for work in [("/", 0.0)] * N_SHORT
                        + [("/download", i * DOWNLOAD_GAP_S) for i in range(N_DOWNLOADS)]]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        """No new requests; those that run go on to their end."""
        self.is_over.set()

    def is_done(self):
        return not any(thread.is_alive() for thread in self.threads)

    def repeat(self, path, delay_s):
        self.network.enter("client")
        self.is_over.wait(delay_s)
        while not self.is_over.is_set():
            self.ask(path)
            self.is_over.wait(SHORT_PAUSE_S)

    def ask(self, path):
        with self.lock:
            request = Request(path, self.phase)
            self.running.add(request)
            self.n_begun += 1
        words = ""
        try:
            self.fetch(request)
        except OSError as error:
            words = str(error)
        with self.lock:
            self.running.remove(request)
            if words:
                self.failures.append(f"{path} of {request.server or 'nobody yet'}, "
                                     f"phase '{request.phase}': {words}")
            elif path == "/download":
                self.n_downloads += 1

    def fetch(self, request):
        """To the last byte. OSError: it failed."""
        with socket.create_connection((network.SERVICE, network.PORT),
                                      timeout=PATIENCE_S) as made:
            made.sendall(f"GET {request.path} HTTP/1.0\r\n\r\n".encode())
            answer = b""
            while True:
                chunk = made.recv(65536)
                if not chunk:
                    break
                answer += chunk
                if request.server is None:
                    self.note_server(request, answer)
        head, _, body = answer.partition(b"\r\n\r\n")
        if request.server is None or not head.startswith(b"HTTP/1.1 200 "):
            raise OSError(f"no answer but {answer[:60]!r}")
        if body != (network.answer_of(request.server) if request.path == "/download"
                    else f"{request.server}\n".encode()):
            raise OSError(f"not the whole answer: {len(body)} bytes")

    def note_server(self, request, answer):
        """The answer's first line is the name of who gives it."""
        line, newline, _ = answer.partition(b"\r\n\r\n")[2].partition(b"\n")
        if not newline:
            return
        with self.lock:
            request.server = line.decode("ascii", "replace")
            phase = request.phase if request.phase == self.phase else CHANGING
            self.by_phase[phase][request.server] += 1

    def set_phase(self, phase):
        with self.lock:
            self.phase = phase

    def answers(self):
        """Of each server, so far."""
        with self.lock:
            return sum(self.by_phase.values(), collections.Counter())

    def downloads(self):
        """Of each server, those that run."""
        with self.lock:
            return collections.Counter(request.server for request in self.running
                                       if request.path == "/download" and request.server)

    def is_left_alone(self, server, since):
        """No request runs on the server, nor one that may have gone there before then."""
        with self.lock:
            return not any(request.server == server
                           or (request.server is None and request.begun <= since)
                           for request in self.running)
