"""A running ``cmvmed label``, and requests to it as its page sends them."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit


class Client:
    """The command in a process of its own, and one connection to it.

    Parameters
    ----------
    folder : folder of the project
    """

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-u", "-m", "cmvmed", "label", "--no-open"]
        self.start = time.perf_counter()
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment())
        assert self.process.stdout is not None
        address = next(found[0] for line in self.process.stdout if (found := re.search(r"http://\S+", line)))
        origin, self.token = address.split("/?token=")
        self.connection = http.client.HTTPConnection(urlsplit(origin).netloc)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer to a request."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        self.connection.request("GET" if body is None else "POST", path, data, headers)
        response = self.connection.getresponse()
        found = json.load(response)
        if response.status != 200:
            raise ValueError(found["error"])
        return found

    def next_row(self, strategy: str = "suggest", skip: Sequence[int] = ()) -> Any:
        """The row that the page proposes."""
        return self.ask("/api/next", {"strategy": strategy, "window": "w", "skip": list(skip)})

    def label(self, row: Any, name: str) -> Any:
        """Label a row; the status."""
        body = {"row": row["row"], "action": "label", "label": name, "seen": row["revision"], "window": "w"}
        return self.ask("/api/labels", body | {"chosen_by": row["strategy"]})["status"]

    def wait(self) -> Any:
        """The status when nothing is left to learn."""
        while (status := self.ask("/api/status"))["learning"]:
            time.sleep(0.05)
        return status

    def processor_seconds(self) -> float:
        """Seconds of the processor of the server."""
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    """Modules are compiled once, as in an installation, even if the environment says otherwise."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
