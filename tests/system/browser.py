# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Chromium without a window, driven by its DevTools protocol over a pair of pipes."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

TIMEOUT_S = 60


class Browser:
    """One page. What it logs, and what it asks of the network, is kept."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="shunt-browser-")
        reads, to_browser = os.pipe()
        from_browser, writes = os.pipe()
        options = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
                   "--disable-dev-shm-usage", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--no-proxy-server",
                   "--disable-extensions", f"--user-data-dir={self.folder}", "--lang=en"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        # It reads from 3 and writes to 4.
        with open(pathlib.Path(self.folder) / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec "$0" "$@" 3<&{reads} 4>&{writes}',
                 "chromium", *options, "about:blank"],
                pass_fds=(reads, writes), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "HOME": self.folder}, start_new_session=True)
        os.close(reads)
        os.close(writes)
        self.to, self.of = to_browser, from_browser
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []
        target = self.until(lambda: next(
            (one for one in self.call("Target.getTargets")["targetInfos"]
             if one["type"] == "page"), None))
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def read(self, timeout_s):
        """The next message, or None."""
        end = time.monotonic() + timeout_s
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.of], [], [], max(0, end - time.monotonic()))
            part = os.read(self.of, 1 << 20) if ready else b""
            if part == b"":
                if ready:
                    raise OSError(f"Chromium has ended: {self.log()}")
                return None
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def log(self):
        path = pathlib.Path(self.folder) / "log"
        return path.read_text(encoding="utf-8", errors="replace")[-2000:]

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self.read(TIMEOUT_S)
            if answer is None:
                raise TimeoutError(f"{method}: no answer: {self.log()}")
            if answer.get("id") == self.number:
                break
            self.events.append(answer)
        if "error" in answer:
            raise ValueError(f"{method}: {answer['error']}")
        return answer["result"]

    def until(self, is_true, timeout_s=TIMEOUT_S, what=""):
        """What is_true() gives once that is something."""
        end = time.monotonic() + timeout_s
        while True:
            found = is_true()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"not in {timeout_s} s: {what}")
            time.sleep(0.05)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until(lambda: self.run("document.readyState") == "complete", what=url)

    def run(self, script):
        """The value of an expression, by JSON."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                         awaitPromise=True)
        if "exceptionDetails" in done:
            raise ValueError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, script):
        return self.until(lambda: self.run(script), what=script)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def resize(self, width, height, is_phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)

    def darken(self, is_dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def press(self, key, code, text=""):
        """A key of the keyboard, as a user has it."""
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **keys, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

    def picture(self, path, height=4000):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"],
                               "height": min(size["height"], height), "scale": 1})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def accessible(self):
        """What a screen reader is told: (role, name) of all that is not left out."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", ""))
                for node in nodes if not node["ignored"]]

    def seen(self, method):
        """The parameters of all events of a kind so far."""
        while (event := self.read(0)) is not None:
            self.events.append(event)
        return [event["params"] for event in self.events if event.get("method") == method]

    def forget(self, method):
        self.seen(method)
        self.events = [event for event in self.events if event.get("method") != method]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        finally:
            os.close(self.to)
            os.close(self.of)
            shutil.rmtree(self.folder, ignore_errors=True)
