"""Results that fits to the same rows share."""

from cmvmed.views.row_cache import RowCache


def counted(calls, value):
    def compute():
        calls.append(value)
        return [value]

    return compute


def test_each_result_is_computed_once_and_taken_over_by_a_fit_to_the_same_rows():
    calls = []
    first = RowCache("rows")
    found = first.get("kernel", counted(calls, 1))
    assert first.get("kernel", counted(calls, 2)) is found == [1]
    second = RowCache("rows", first.finish())
    assert second.get("kernel", counted(calls, 3)) is found
    assert calls == [1]


def test_other_rows_and_unknown_rows_share_nothing():
    calls = []
    for content, other in (("rows", "others"), (None, None), ("rows", None)):
        first = RowCache(content)
        first.get("kernel", counted(calls, 1))
        assert RowCache(other, first.finish()).get("kernel", counted(calls, 2)) == [2]
    assert calls == [1, 2] * 3


def test_what_a_fit_does_not_ask_for_is_dropped_at_its_end():
    calls = []
    first = RowCache("rows")
    for name in ("kernel", "graph"):
        first.get(name, counted(calls, name))
    second = RowCache("rows", first.finish())
    second.get("kernel", counted(calls, "again"))
    third = RowCache("rows", second.finish())
    third.get("graph", counted(calls, "graph again"))
    third.get("kernel", counted(calls, "again"))
    assert calls == ["kernel", "graph", "graph again"]


def test_what_a_fit_asks_for_once_is_kept_for_later_fits_alone():
    calls = []
    for content in (None, "rows"):
        first = RowCache(content)
        first.get("kernel", counted(calls, content), once=True)
        RowCache(content, first.finish()).get("kernel", counted(calls, "again"), once=True)
    assert calls == [None, "again", "rows"]
