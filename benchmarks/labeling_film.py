"""The film of the labeling page: ``python -m benchmarks.labeling_film`` writes docs/labeling.gif.

Simulated footsteps at four sensors are labeled by keyboard in Chromium, which must be installed, as in the tests: from
no labels to an estimate of the accuracy. A sound is played, a label taken back, a row marked as unsure.
"""

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from selenium.webdriver.common.keys import Keys

from benchmarks.provenance import ROOT
from tests.labeling.driven import Page, Server, serving, write_footsteps
from tests.pages.browser import chromium

FILM = ROOT / "docs" / "labeling.gif"
SIZE = (1120, 900)
WIDTH = 860  # of the film
N_COLORS = 64
MAX_BYTES = 1_000_000


def scenes(page: Page, server: Server, truth: dict[str, str]) -> Iterator[int]:
    """What is done on the page; the milliseconds for which each state is shown."""
    yield 2000
    for _ in range(2):
        page.label_as(truth[page.text("row-title")])
        yield 1000
    page.press(" ")
    page.wait(lambda: page.script("return document.querySelector('.line.playing').hidden") is False)
    yield 1000
    page.press(" ")
    page.press("u")
    page.wait(lambda: page.text("saved").startswith("Undone"))
    yield 1200
    page.label_as(truth[page.text("row-title")])
    page.press_and_wait("s")
    yield 1000
    for n_labels in (14, 30):
        while server.request("/api/status")["labeled"] < n_labels:
            page.label_as(truth[page.text("row-title")])
        server.wait_until(lambda s: s["estimate"] is not None and not s["learning"])
        page.press_and_wait(Keys.ARROW_RIGHT)
        shown = f"{100 * server.request('/api/status')['estimate']['mean']:.1f} %"
        page.wait(lambda shown=shown: page.text("accuracy") == shown)
        yield 2500
    page.resize(390, SIZE[1])
    page.wait(lambda: page.script("return document.querySelector('.uplot').offsetWidth") < 390)
    yield 2500


def frame(page: Page) -> Image.Image:
    """The page as a picture of the film's size."""
    picture = Image.open(io.BytesIO(page.browser.get_screenshot_as_png())).convert("RGB")
    canvas = Image.new("RGB", SIZE, "white")
    canvas.paste(picture, ((SIZE[0] - picture.width) // 2, 0))
    small = canvas.resize((WIDTH, round(WIDTH * SIZE[1] / SIZE[0])), Image.Resampling.LANCZOS)
    return small.quantize(N_COLORS, dither=Image.Dither.NONE)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as profile:
        truth = write_footsteps(Path(name))
        with serving(Path(name)) as server, chromium(profile) as browser:
            page = Page(browser, server.address, SIZE[0], height=SIZE[1])
            frames = [(frame(page), duration) for duration in scenes(page, server, truth)]
    pictures, durations = zip(*frames, strict=True)
    pictures[0].save(FILM, save_all=True, append_images=pictures[1:], duration=list(durations), loop=0, optimize=True)
    print(f"{FILM.relative_to(ROOT)}: {len(pictures)} pictures, {os.path.getsize(FILM):,} bytes")
    if os.path.getsize(FILM) > MAX_BYTES:
        raise SystemExit(f"The film is larger than {MAX_BYTES:,} bytes.")


if __name__ == "__main__":
    main()
