# SPDX-License-Identifier: BSD-3-Clause
"""Many TCP connections at once, which go on in peace through whatever a test does."""

import asyncio
import contextlib
import socket
import threading

import lab
from lab import NETWORK, wait_until

# Of both families, half each.
N_TRANSFERS = 200
# Like the services of the lab, at a port of its own: nginx has the others.
PORT = 9001
BLOCK_BYTES = 1000
N_BLOCKS = 20
PAUSE_S = 0.1
# Without a byte: retransmissions back off to some seconds on a busy machine.
PATIENCE_S = 30


class Loop:
    """An asyncio loop in a thread, in a namespace."""

    def __init__(self, name):
        self.name = name
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.turn, daemon=True)
        self.thread.start()

    def turn(self):
        NETWORK.enter(self.name)
        self.loop.run_forever()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    @staticmethod
    async def cancel_all():
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def stop(self):
        self.run(self.cancel_all()).result(lab.TIMEOUT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=lab.TIMEOUT_S)
        self.loop.close()


class Echo:
    """A backend's server: says its name, and then every byte it gets."""

    def __init__(self, name):
        self.name = name
        self.n_accepted = 0
        self.n_bytes = 0
        self.errors = []
        self.loop = Loop(name)
        self.server = self.loop.run(self.listen()).result(lab.TIMEOUT_S)

    async def listen(self):
        made = socket.create_server(("::", PORT), family=socket.AF_INET6,
                                    dualstack_ipv6=True, backlog=N_TRANSFERS)
        return await asyncio.start_server(self.serve, sock=made)

    async def serve(self, reader, writer):
        self.n_accepted += 1
        try:
            writer.write(self.name.encode())
            while True:
                data = await reader.read(65536)
                if not data:
                    break
                self.n_bytes += len(data)
                writer.write(data)
                await writer.drain()
        except OSError as error:
            self.errors.append(str(error))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def close(self):
        self.server.close()

    def stop(self):
        self.loop.run(self.close()).result(lab.TIMEOUT_S)
        self.loop.stop()


class Transfers:
    """Of both families, all at once: blocks go out in peace and must come back, each byte as
    it was, until there have been N_BLOCKS and what the test does is over."""

    def __init__(self):
        self.is_over = False
        self.n_blocks = [0] * N_TRANSFERS
        self.backends = [""] * N_TRANSFERS
        self.loop = Loop("client")
        self.results = [self.loop.run(self.transfer(i)) for i in range(N_TRANSFERS)]

    @staticmethod
    def family(i):
        return lab.FAMILIES[i % 2]

    async def transfer(self, i):
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(lab.VIP[self.family(i)], PORT)
            self.backends[i] = (await reader.readexactly(2)).decode()
        while self.n_blocks[i] < N_BLOCKS or not self.is_over:
            block = f"{i}:{self.n_blocks[i]};".encode().ljust(BLOCK_BYTES, b"*")
            writer.write(block)
            async with asyncio.timeout(PATIENCE_S):
                back = await reader.readexactly(BLOCK_BYTES)
            if back != block:
                raise OSError(f"{block[:20]} came back as {back[:20]}")
            self.n_blocks[i] += 1
            await asyncio.sleep(PAUSE_S)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            rest = await reader.read()
        if rest:
            raise OSError(f"{len(rest)} bytes too many")
        writer.close()

    def failures(self):
        return [f"{i}, IPv{self.family(i)}, {self.backends[i]}: {done.exception()!r}"
                for i, done in enumerate(self.results)
                if done.done() and done.exception() is not None]

    def wait_for_blocks(self):
        """Until each has gone a block further than those under way now; or one has failed."""
        before = list(self.n_blocks)
        wait_until(lambda: self.failures() or all(now >= then + 2 for now, then in
                                                  zip(self.n_blocks, before)),
                   lambda: f"each goes on: {self.n_blocks}, after {before}")

    def finish(self):
        self.is_over = True
        wait_until(lambda: all(done.done() for done in self.results), "transfers end")

    def faults(self, echoes):
        """Of transfers that are over, in words: what failed, and each server that did not get
        just these connections and bytes."""
        found = self.failures()
        for one in echoes:
            mine = [i for i in range(N_TRANSFERS) if self.backends[i] == one.name]
            n_bytes = BLOCK_BYTES * sum(self.n_blocks[i] for i in mine)
            if one.errors or (one.n_accepted, one.n_bytes) != (len(mine), n_bytes):
                found.append(f"{one.name}: {one.n_accepted} connections of {len(mine)}, "
                             f"{one.n_bytes} bytes of {n_bytes}, {one.errors}")
        return found

    def stop(self):
        self.is_over = True
        self.loop.stop()


def resets():
    """Of connections, by any backend or the client."""
    return {name: NETWORK.snmp(name, "Tcp.OutRsts") + NETWORK.snmp(name, "Tcp.EstabResets")
            for name in (*lab.BACKENDS, "client")}
