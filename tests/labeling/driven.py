"""The labeling page as a user has it: the command in a process of its own, and a browser with its keyboard."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import cmvmed
from cmvmed.workbench import init
from tests.workbench.jobs import write_tickets, write_windows

PATIENCE = 60.0  # seconds, on a machine that does many things at once


def write_footsteps(folder, n_human=40, n_animal=32):
    """A folder per sensor with a wav file per event, without labels; the classes by identifier."""
    import soundfile

    from cmvmed.datasets import make_footsteps

    data = make_footsteps(n_human=n_human, n_animal=n_animal, random_state=0)
    X = np.asarray(data.data)
    for name, columns in data.views.items():
        (folder / "events" / name).mkdir(parents=True)
        for i, row in enumerate(X[:, columns] / np.abs(X).max()):
            soundfile.write(folder / "events" / name / f"event{i:03d}.wav", row, round(data.sampling_rate))
    _write_project(folder, "events")
    return {f"event{i:03d}": str(data.target_names[k]) for i, k in enumerate(data.target)}


def write_table(folder):
    """Two sensors as a table, without labels; the classes by identifier."""
    truth = write_windows(folder, n=150, share_labeled=0.0)
    _write_project(folder, "windows.csv")
    return {f"w{i:03d}": str(name) for i, name in enumerate(truth)}


def write_texts(folder):
    """Texts and numbers, some labeled; the classes by identifier."""
    truth = write_tickets(folder)
    _write_project(folder, "tickets.csv")
    return {str(1000 + i): str(name) for i, name in enumerate(truth)}


JOBS = {"sound": write_footsteps, "table": write_table, "text": write_texts}


def _write_project(folder, data):
    file = folder / "cmvmed.toml"
    file.write_text(init(folder / data, file).text, encoding="utf-8")


def _heed_interrupts():
    """Undo what a shell sets for commands in the background: that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Server:
    """A running ``cmvmed label``."""

    def __init__(self, folder, *options):
        paths = [str(Path(cmvmed.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        self.folder = folder
        command = [sys.executable, "-u", "-m", "cmvmed", "label", "--no-open", *options]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_interrupts if os.name == "posix" else None,
        )
        for line in self.process.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                self.address = found[0]
                break
        else:
            raise AssertionError(f"the server ended: {self.process.stderr.read()}")
        self.origin, self.token = self.address.split("/?token=")

    def request(self, path, body=None, timeout=PATIENCE):
        """The JSON that a request answers; refused requests raise."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.origin + path, data, headers)
        with urllib.request.urlopen(asked, timeout=timeout) as response:
            return json.load(response)

    def try_label(self, row, label, seen=None):
        """The status code of a label that is sent; None if there was no answer."""
        body = {"row": row, "action": "label", "label": label, "seen": seen, "window": "w", "chosen_by": "random"}
        try:
            self.request("/api/labels", body)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None
        return 200

    def wait_until(self, is_true, seconds=PATIENCE):
        """The first status for which something holds."""
        end = time.monotonic() + seconds
        while not is_true(status := self.request("/api/status")):
            assert time.monotonic() < end, status
            time.sleep(0.1)
        return status

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self):
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self._wait()

    def _wait(self):
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@contextmanager
def serving(folder, *options):
    server = Server(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


class Page:
    """The page in a browser."""

    def __init__(self, browser, address, width=1400, scheme="light", height=1000):
        self.browser = browser
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.resize(width, height)
        browser.get(address)
        self.wait(lambda: self.text("row-title"))

    def resize(self, width, height=1000):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def text(self, name):
        """Text of the element with an id."""
        return self.script("return document.getElementById(arguments[0]).textContent", name)

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def wait(self, is_true, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not (found := is_true()):
            assert time.monotonic() < end, (self.text("row-title"), self.text("message"), self.text("advice"))
            time.sleep(0.02)
        return found

    def press(self, *keys):
        """Keys of the keyboard, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def press_and_wait(self, key):
        """A key that leads to another row."""
        before = self.text("row-title")
        self.press(key)
        self.wait(lambda: self.text("row-title") != before)

    def classes(self):
        return self.script("return [...document.querySelectorAll('.class')].map(b => b.dataset.class)")

    def counts(self):
        return self.script(
            "return [...document.querySelectorAll('.class')].map(b => parseInt(b.lastElementChild.textContent))"
        )

    def add_class(self, name):
        from selenium.webdriver.common.keys import Keys

        self.press("n", name, Keys.ENTER)
        self.wait(lambda: name in self.classes())
        self.wait(lambda: self.script("return document.activeElement.id") == "row-title")

    def label_as(self, name):
        """Label the row by the key of its class, or by its name."""
        from selenium.webdriver.common.keys import Keys

        if name not in self.classes():
            self.add_class(name)
        number = self.classes().index(name) + 1
        before, saved = self.text("row-title"), f"Saved: {self.text('row-title')}, {name}"
        self.press(*([str(number)] if number <= 9 else ["n", name, Keys.ENTER]))
        self.wait(lambda: self.text("saved") == saved and self.text("row-title") != before)

    def label_rows(self, truth, n):
        """Label as many rows as they come; their identifiers."""
        rows = []
        for _ in range(n):
            rows.append(self.text("row-title"))
            self.label_as(truth[rows[-1]])
        return rows
