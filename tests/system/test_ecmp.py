#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two balancers of one configuration behind a router that spreads flows over both: one is
killed, and comes back, and no transfer under way notices more than a pause.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import asyncio
import collections
import contextlib
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK, wait_until  # noqa: E402 pylint: disable=wrong-import-position

# Of both families, half each.
N_TRANSFERS = 200
# Of the flows of a family, to either balancer: that there are fewer by chance has odds of one
# to 10^6, and the kernel's choice is not made anew for the same ports.
SHARE_MIN = 25
# Like the services of the lab, at a port of its own: nginx has the others.
PORT = 9001
BLOCK_BYTES = 1000
N_BLOCKS = 20
PAUSE_S = 0.1
# From the death of a balancer until the router's other protocols have told it.
WITHDRAWAL_S = 0.5
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

    def stop(self):
        self.is_over = True
        self.loop.stop()


def resets():
    """Of connections, by any backend or the client."""
    return {name: NETWORK.snmp(name, "Tcp.OutRsts") + NETWORK.snmp(name, "Tcp.EstabResets")
            for name in (*lab.BACKENDS, "client")}


def flows(daemon):
    """{family: {backend: flows}}"""
    return {int(one["name"][-1]): {each["name"]: each["flows"] for each in one["backends"]}
            for one in daemon.json("stats")["services"]}


def packets(daemon):
    return daemon.json("stats")["packets"]["forwarded"]


class EachDriver:
    driver = ""

    def setUp(self):
        NETWORK.add_second_balancer()
        self.addCleanup(NETWORK.serve_by, lab.OWN)
        self.echoes = [Echo(name) for name in lab.BACKENDS]
        for one in self.echoes:
            self.addCleanup(one.stop)
        services = [lab.service(family, "ipip", port=PORT) for family in lab.FAMILIES]
        self.stays = self.start(self.driver, 1, *services)
        self.dies = self.start(self.driver, 1, *services, place="second")
        NETWORK.serve_by(lab.OWN, lab.SECOND_OWN)

    def begin(self):
        transfers = Transfers()
        self.addCleanup(transfers.stop)
        transfers.wait_for_blocks()
        self.assertEqual(transfers.failures(), [])
        return transfers

    def check_shares(self, *each):
        """Of two balancers' flows, that none has but a few."""
        for family in lab.FAMILIES:
            counts = [sum(found[family].values()) for found in each]
            self.assertGreaterEqual(min(counts), SHARE_MIN, f"IPv{family}: {counts}")

    def test_transfers_outlive_a_balancer(self):
        """Killed, it loses nothing but time; and as little when it has come back."""
        before = resets()
        transfers = self.begin()
        at_first = {family: collections.Counter(
            transfers.backends[i] for i in range(N_TRANSFERS) if transfers.family(i) == family)
            for family in lab.FAMILIES}
        stays, dies = flows(self.stays), flows(self.dies)
        self.check_shares(stays, dies)
        for family in lab.FAMILIES:
            # Who answers is whom one of the two has chosen.
            self.assertEqual(collections.Counter(stays[family]) + collections.Counter(
                dies[family]), at_first[family])

        self.dies.kill()
        time.sleep(WITHDRAWAL_S)
        NETWORK.serve_by(lab.OWN)
        transfers.wait_for_blocks()
        self.assertEqual(transfers.failures(), [])
        # The flows of the killed one, too, by the same backends: nothing but the table knew.
        self.assertEqual(flows(self.stays), at_first)

        self.dies.start()
        self.assertEqual(packets(self.dies), 0)
        NETWORK.serve_by(lab.OWN, lab.SECOND_OWN)
        transfers.wait_for_blocks()
        self.assertEqual(transfers.failures(), [])
        back = flows(self.dies)
        self.check_shares(back)
        self.assertEqual(back, dies)
        self.assertEqual(flows(self.stays), at_first)

        transfers.finish()
        self.assertEqual(transfers.failures(), [])
        for one in self.echoes:
            mine = [i for i in range(N_TRANSFERS) if transfers.backends[i] == one.name]
            self.assertEqual(one.errors, [])
            self.assertEqual(one.n_accepted, len(mine))
            self.assertEqual(one.n_bytes,
                             BLOCK_BYTES * sum(transfers.n_blocks[i] for i in mine))
        self.assertEqual(resets(), before)
        self.assertEqual(self.stays.json("stats")["packets"]["dropped"], 0)


class PacketSockets(EachDriver, lab.LabCase):
    driver = "net_af_packet"


class XdpSockets(EachDriver, lab.LabCase):
    driver = "net_af_xdp"


if __name__ == "__main__":
    lab.main()
