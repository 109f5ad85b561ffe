#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The status page of a shuntd with traffic, in Chromium: what is on it, what changes on it, and
that it can be read on a phone, by keyboard and by a screen reader.

SHUNTD and SHUNTCTL name the programs. With SHUNT_PICTURES, a folder, there are pictures to look
at.
"""

import json
import os
import pathlib
import urllib.error
import urllib.request

from browser import Browser
from small import METRICS, ODD_BACKEND, ODD_SERVICE, Server, SmallCase, main

URL = f"http://{METRICS}/"
PICTURES = os.environ.get("SHUNT_PICTURES")
PHONE, DESK = (390, 844), (1280, 900)

# The lowest contrast of any text that is seen, by WCAG 2's formula.
CONTRAST = """
(() => {
	const parse = (color) => color.match(/[\\d.]+/g).map(Number);
	const light = (color) => parse(color).slice(0, 3).map((part) => part / 255)
		.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
		.reduce((all, part, i) => all + part * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (element) => {
		for (; element !== null; element = element.parentElement) {
			const color = getComputedStyle(element).backgroundColor;
			if ((parse(color)[3] ?? 1) > 0) {
				return color;
			}
		}
		return "rgb(255, 255, 255)";
	};
	const found = [...document.body.querySelectorAll("*")].filter((element) =>
		element.offsetParent !== null && [...element.childNodes].some(
			(node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== ""));
	const ratios = found.map((element) => {
		const [low, high] = [light(getComputedStyle(element).color), light(behind(element))]
			.sort((a, b) => a - b);
		return [(high + 0.05) / (low + 0.05), element.outerHTML.slice(0, 80)];
	});
	return [ratios.length, ...ratios.sort((a, b) => a[0] - b[0])[0]];
})()
"""


def quote(text):
    return json.dumps(text)


class Page(SmallCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.resize(*DESK)
        cls.browser.open(URL)
        # A second sample has rates.
        cls.browser.wait_for("last !== null && series.get('packets/received')?.length > 0")
        cls.browser.run("window.stays = true")

    def setUp(self):
        self.browser.resize(*DESK)
        self.browser.darken(False)
        self.browser.run("""document.activeElement.blur(); $("filter").value = "";
            $("trouble").checked = false; showServices(shown)""")

    def tearDown(self):
        problems = [event["entry"]["text"] for event in self.browser.seen("Log.entryAdded")
                    if event["entry"]["level"] == "error"]
        thrown = self.browser.seen("Runtime.exceptionThrown")
        self.browser.forget("Log.entryAdded")
        self.assertEqual((problems, thrown), ([], []))
        self.assertTrue(self.browser.run("window.stays"), "the page was loaded anew")
        self.assertIsNone(self.browser.run("window.odd ?? null"), "a name was more than text")

    def rows(self, service):
        """By backend, the texts of its row."""
        found = self.browser.run(f"""
            [...document.querySelectorAll(".service")]
                .filter((one) => one.querySelector("h3").textContent === {quote(service)})
                .flatMap((one) => [...one.querySelectorAll("tbody tr")])
                .map((row) => [...row.children].map((cell) => cell.innerText))""")
        return {cells[0].split("\n")[0]: cells[1:] for cells in found}

    def states(self, service):
        return {name: cells[0].split("\n")[0] for name, cells in self.rows(service).items()}

    def wait_for_states(self, service, wanted):
        self.browser.until(lambda: self.states(service) == wanted,
                           what=f"{wanted}, but {self.states(service)}")

    def picture(self, name):
        if PICTURES:
            pathlib.Path(PICTURES).mkdir(exist_ok=True)
            self.browser.picture(pathlib.Path(PICTURES) / f"{name}.png")

    def test_what_is_there_is_shown(self):
        self.wait_for_states("web", {f"web-{k}": "✓ up" for k in (1, 2, 3)})
        self.wait_for_states("shop", {"shop-1": "✓ up", "shop-2": "✓ up"})
        self.wait_for_states(ODD_SERVICE, {ODD_BACKEND: "✓ up", "n" * 255: "◐ draining"})
        self.browser.wait_for("series.get('packets/received').length >= 3")
        state, since, weight, share, packets, _, bits, flows = self.rows("web")["web-3"]
        self.assertEqual((state, weight), ("✓ up\nnot checked", "50"))
        self.assertRegex(since, r"^\d+ s$")
        self.assertRegex(share, r"^\d+\.\d % of 20\.0 %")
        for text in (packets, bits):
            self.assertRegex(text, r"^[1-9]")
        self.assertNotEqual(flows, "–")
        self.assertRegex(self.rows("shop")["shop-1"][1], r"^\d+ s$")
        self.assertIn("198.51.100.20, tcp, port 443 · ipip · maglev of 65,537 · 2 of 2 backends "
                      "in use, 2 needed", self.browser.text("#services"))
        self.assertIn("✕ not ready", self.browser.text("#services"))
        self.assertIn("it has no backends", self.browser.text("#services"))
        # Its series is the line, and the share's bar is as long as the text says.
        points = self.browser.run("""[...document.querySelectorAll(".spark polyline")]
            .map((line) => (line.getAttribute("points") ?? "").split(" ").length)""")
        self.assertGreaterEqual(max(points), 3)
        drops = self.browser.text("#drops")
        self.assertRegex(drops, r"no_service\s+\d+")
        self.assertRegex(drops, r"truncated\s+\d+")
        self.assertNotIn("no_backend", drops)
        self.assertRegex(self.browser.text("#workers"), r"0\s+\d+\.\d %")
        self.assertRegex(self.browser.text("#ports"), r"wan\s+✓ up\s+–\s+\d")
        self.assertEqual(self.browser.run("document.title"), f"(1) Shunt at {METRICS}")
        self.picture("desk")

    def test_it_is_as_fresh_as_shuntd(self):
        counts = [self.browser.run("last.packets.received")]
        for _ in range(2):
            self.browser.wait_for(f"last.packets.received > {counts[-1]}")
            counts.append(self.browser.run("last.packets.received"))
        self.assertGreaterEqual(self.balancer.ctl("stats")["packets"]["received"], counts[-1])

    def test_changes_are_seen_and_told(self):
        change = self.balancer.ctl
        before = {f"web-{k}": "✓ up" for k in (1, 2, 3)}
        self.wait_for_states("web", before)
        change("backend", "drain", "web/web-1")
        self.wait_for_states("web", {**before, "web-1": "◐ draining"})
        self.assertIn("web/web-1 is draining.", self.browser.text("#news"))
        first, second, _ = self.browser.run(
            "last.services[0].backends.map((one) => one.state_seconds)")
        self.assertLess(first, second)
        self.assertRegex(self.rows("web")["web-2"][3], r" of 66\.7 %")
        change("backend", "add", "web/web-9", "10.0.0.9", "--weight", "7")
        self.wait_for_states("web", {**before, "web-1": "◐ draining", "web-9": "✓ up"})
        self.assertEqual(self.rows("web")["web-9"][2], "7")
        change("backend", "remove", "web/web-9")
        change("backend", "up", "web/web-1")
        self.wait_for_states("web", before)

    def test_who_fails_its_checks_is_seen_with_the_reason(self):
        self.wait_for_states("shop", {"shop-1": "✓ up", "shop-2": "✓ up"})
        self.servers.pop(2).stop()
        self.wait_for_states("shop", {"shop-1": "✓ up", "shop-2": "✕ failing"})
        self.assertIn("refused", self.rows("shop")["shop-2"][0])
        self.browser.wait_for("document.title.startsWith('(2)')")
        self.browser.run("document.querySelector('#trouble').click()")
        self.assertEqual(self.rows("web"), {})
        self.assertEqual(list(self.rows("shop")), ["shop-2"])
        self.picture("trouble")
        self.servers[2] = Server("10.0.0.2")
        self.browser.wait_for("document.title.startsWith('(1)')")

    def test_how_it_is_with_etcd_is_shown(self):
        """Of what status.json says of it: the page is made to have more and more trouble."""
        self.assertTrue(self.browser.run("last.etcd === null && $('etcd').hidden"))
        self.browser.run("""const hold = $("pause"); hold.click();
            window.say = (etcd) => { const all = measure({...last, etcd}); tellNews(all); show(all); };
            window.etcd = {state: "watching", since: 1750000000, error: null, from_copy: false,
                revision: 42, hash: "30a9a71c18bbb7e4", known_revision: 42, refused_document: null,
                applied: 1, refused: 0, failures: 0, copy: {saved: 1750000000, error: null}};
            say(etcd)""")
        self.assertRegex(self.browser.text("#etcd"),
                         "^✓ etcd revision 42, hash 30a9a71c18bbb7e4, watching since .*2025")
        self.assertTrue(self.browser.run("document.title.startsWith('(1) ')"))
        for change, words in (
                ("state: 'unreachable', error: 'http://h: <b>no answer</b> in time'",
                 r"unreachable since .*2025.*: http://h: <b>no answer</b> in time"),
                ("from_copy: true", r"what runs is from the copy of .*2025"),
                ("refused_document: {revision: 43, error: 'k:1:2: no'}",
                 "revision 43 is refused: k:1:2: no"),
                ("copy: {saved: null, error: 'No space left'}",
                 "the copy cannot be written: No space left")):
            self.browser.run(f"say({{...etcd, {change}}})")
            for where in ("#etcd", "#news"):
                self.assertRegex(self.browser.text(where), words)
            self.assertIn("▲ etcd, with trouble", self.browser.text("#etcd"))
            self.assertTrue(self.browser.run("document.title.startsWith('(2) ')"))
        self.browser.run("say(null); $('pause').click()")
        self.assertTrue(self.browser.run("$('etcd').hidden"))

    def press_until(self, selector):
        """Tab until the focus is there. Returns how often."""
        for n in range(1, 10):
            self.browser.press("Tab", 9)
            if self.browser.run(f"document.activeElement.matches({quote(selector)})"):
                return n
        raise AssertionError(f"Tab does not come to {selector}")

    def test_it_is_used_by_keyboard(self):
        self.assertEqual(self.press_until(".skip"), 1)
        self.assertEqual(self.press_until("#pause"), 1)
        self.assertNotEqual(self.browser.run(
            "getComputedStyle(document.activeElement).outlineStyle"), "none")
        self.browser.press(" ", 32, " ")
        self.assertEqual(self.browser.run("$('pause').getAttribute('aria-pressed')"), "true")
        then = self.browser.run("last.uptime_seconds")
        self.assertEqual(self.press_until("#filter"), 1)
        for letter in "WEB-2":
            self.browser.press(letter, ord(letter), letter)
        self.assertEqual((list(self.rows("web")), self.rows("shop")), (["web-2"], {}))
        self.browser.run("$('filter').value = 'nobody'; $('filter').dispatchEvent(new Event('input'))")
        self.assertEqual(self.browser.text("#shown"), "Nothing is like that.")
        self.assertEqual(self.press_until("#trouble"), 1)
        self.assertEqual(self.browser.run("last.uptime_seconds"), then)
        self.browser.run("$('pause').focus()")
        self.browser.press(" ", 32, " ")
        self.browser.wait_for(f"last.uptime_seconds > {then}")

    def test_a_screen_reader_is_told_all(self):
        for size in (DESK, PHONE):
            self.browser.resize(*size, is_phone=size == PHONE)
            told = self.browser.accessible()
            for one in [("heading", f"Shunt at {METRICS}"), ("table", "Backends of web"),
                        ("columnheader", "Packets/s"), ("rowheader", "web-1 10.0.0.1"),
                        ("searchbox", "Filter"), ("checkbox", "only what needs a look"),
                        ("button", "Pause"), ("heading", "shop"), ("main", ""),
                        ("rowheader", "truncated")]:
                self.assertIn(one, told)
            for role in ("table", "button", "link", "searchbox", "checkbox", "heading", "region"):
                self.assertNotIn((role, ""), told)
            self.assertEqual([one for one in told if one[0] in ("image", "graphics-document")], [])
        # This browser keeps roles; others forget them where a phone's layout takes a table apart.
        self.assertEqual(self.browser.run("""document.querySelectorAll(
            ".wide:not([role]), .wide :is(thead, tbody, tr, th, td):not([role])").length"""), 0)
        self.assertEqual(self.browser.run("document.documentElement.lang"), "en")

    def test_it_fits_a_phone(self):
        self.browser.resize(*PHONE, is_phone=True)
        self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), PHONE[0])
        self.assertEqual(self.browser.run("""[...document.querySelectorAll("main *")].filter((one) =>
            one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".unseen, thead, svg"))
            .map((one) => one.outerHTML.slice(0, 80))"""), [])
        self.picture("phone")

    def test_light_and_dark_have_contrast(self):
        pages = set()
        for is_dark in (False, True):
            self.browser.darken(is_dark)
            n, ratio, where = self.browser.run(CONTRAST)
            self.assertGreater(n, 50)
            self.assertGreaterEqual(ratio, 4.5, where)
            pages.add(self.browser.run("getComputedStyle(document.body).backgroundColor"))
            self.picture("dark" if is_dark else "light")
        self.assertEqual(len(pages), 2)

    def test_what_is_put_into_it_does_not_run(self):
        self.assertEqual(self.browser.run("document.scripts.length"), 1)
        found = self.browser.run("""new Promise((resolve) => {
            const seen = [];
            addEventListener("securitypolicyviolation", (event) => {
                seen.push(event.effectiveDirective);
                if (seen.length === 4) {
                    resolve(seen.sort());
                }
            });
            const put = (tag, keys) => {
                const one = Object.assign(document.createElement(tag), keys);
                document.body.append(one);
                setTimeout(() => one.remove(), 100);
            };
            put("img", {src: "http://127.0.0.1:1/"});
            put("iframe", {src: "http://127.0.0.1:1/"});
            fetch("http://127.0.0.1:1/").catch(() => {});
            try { document.body.innerHTML = "x"; } catch { }
        })""")
        self.assertEqual(found, ["connect-src", "frame-src", "img-src",
                                 "require-trusted-types-for"])
        self.browser.forget("Log.entryAdded")  # what was refused is logged

    def test_it_asks_its_own_shuntd_and_changes_nothing(self):
        generation = self.balancer.ctl("status")["generation"]
        asked = {(event["request"]["method"], event["request"]["url"])
                 for event in self.browser.seen("Network.requestWillBeSent")}
        self.assertEqual(asked, {("GET", URL), ("GET", f"{URL}status.json")})
        for method in ("POST", "PUT", "DELETE"):
            for path in ("", "status.json"):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(URL + path, method=method))
                self.assertEqual(refused.exception.code, 405)
                refused.exception.close()
        self.assertEqual(self.balancer.ctl("status")["generation"], generation)

    def test_a_shuntd_that_is_gone_and_comes_back(self):
        self.balancer.stop()
        self.browser.wait_for("!$('alarm').hidden")
        self.assertIn("shuntd has not answered since", self.browser.text("#alarm"))
        self.assertIn(("alert", ""), self.browser.accessible())
        self.picture("gone")
        self.balancer.start()
        self.browser.wait_for("$('alarm').hidden && last.uptime_seconds < 30")
        self.wait_for_states("web", {f"web-{k}": "✓ up" for k in (1, 2, 3)})
        self.wait_for_states("shop", {"shop-1": "✓ up", "shop-2": "✓ up"})
        self.browser.forget("Log.entryAdded")  # it says there, too, that it was refused


if __name__ == "__main__":
    main(("chromium", "chromium"), ("ip", "iproute2"))
