#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two balancers of one configuration behind a router that spreads flows over both: one is
killed, and comes back, and no transfer under way notices more than a pause.

SHUNTD, SHUNTCTL and SHUNT_DECAP name the programs.
"""

import collections
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402 pylint: disable=wrong-import-position
from lab import NETWORK  # noqa: E402 pylint: disable=wrong-import-position
from transfers import (  # noqa: E402 pylint: disable=wrong-import-position
    N_TRANSFERS, PORT, Echo, Transfers, resets)

# Of the flows of a family, to either balancer: that there are fewer by chance has odds of one
# to 10^6, and the kernel's choice is not made anew for the same ports.
SHARE_MIN = 25
# From the death of a balancer until the router's other protocols have told it.
WITHDRAWAL_S = 0.5


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
        self.assertEqual(transfers.faults(self.echoes), [])
        self.assertEqual(resets(), before)
        self.assertEqual(self.stays.json("stats")["packets"]["dropped"], 0)


class PacketSockets(EachDriver, lab.LabCase):
    driver = "net_af_packet"


class XdpSockets(EachDriver, lab.LabCase):
    driver = "net_af_xdp"


if __name__ == "__main__":
    lab.main()
