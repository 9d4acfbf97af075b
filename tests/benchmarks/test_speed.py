"""The table of speed: its smallest row runs, and rows that are not measured again stay."""

from benchmarks import speed
from benchmarks.speed_points import POINTS, Line


def test_the_smallest_row_runs():
    ((name, what, own, goal, *peers, commit),) = speed.measure("help", "abc")
    assert (name, what, goal, commit) == ("help", "`cmvmed --help`, clock", "0.3 s", "abc")
    assert own.endswith("s")
    assert float(own.split()[0]) > 0.0
    assert set(peers) == {"–"}


def test_a_row_that_fails_says_why():
    ((_, what, reason, *_),) = speed.measure("no such row", "abc")
    assert (what, reason) == ("failed", "KeyError: 'no such row'")


def test_rows_of_an_earlier_run_stay(tmp_path, monkeypatch):
    lines = {"help": [["help", "a", "1 s", "–", "–", "–", "–", "old"]], "train": [["train", *"bcdefg", "old"]] * 2}
    path = tmp_path / "speed.md"
    path.write_text(f"Last run: some.\n\n{speed.table(lines)}\n")
    assert speed.read_table(path) == lines
    monkeypatch.setattr(speed, "measure", lambda name, commit: [[name, *"tuvwxy", commit]])
    monkeypatch.setattr("sys.argv", ["speed", "help", "--output", str(path)])
    speed.main()
    found = speed.read_table(path)
    assert found["train"] == lines["train"]
    assert found["help"][0][1:3] == ["t", "u"]
    assert path.read_text().startswith("# python -m benchmarks.speed help (commit ")


def test_a_fit_is_measured_beside_all_peers(monkeypatch):
    monkeypatch.setattr("benchmarks.speed_points.REPEATS", 1)
    (line,) = POINTS["fit-300"]()
    assert isinstance(line, Line)
    assert list(line.peers) == list(speed.PEERS)
    assert all(cell.endswith("x)") for cell in line.peers.values())
