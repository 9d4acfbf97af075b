"""Features of one sensor: lengths, missing and constant signals, errors that name the case, the cache."""

import numpy as np
import pytest
from aeon.transformations.collection.convolution_based import MiniRocket
from scipy.stats import norm, rankdata

from cmvmed.features import FeatureCache, SignalFeatures, WindowFeatures, views_transformer
from cmvmed.features import feature_cache as caching
from cmvmed.features.extractors import extend, normal_scores, reference_length, windows
from cmvmed.features.signal_blocks import as_sensor_signals, blocks_of_equal_length
from cmvmed.features.signal_features import content_hash, side_by_side
from cmvmed.recordings import Recordings, SensorSignals

COMPILED = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("multirocket", "catch22")]  # by numba, for a minute


def signals_of(lengths, n_channels=2, seed=0):
    rng = np.random.default_rng(seed)
    return [None if length is None else rng.normal(size=(n_channels, length)) for length in lengths]


@pytest.fixture(params=["statistics", "ranks", "mfcc", "minirocket", *COMPILED])
def kind(request):
    return request.param


def made(kind, X):
    return SignalFeatures(kind, sampling_rate=1000.0 if kind == "mfcc" else 50.0).fit(X)


def test_statistics_are_those_of_window_features():
    X = np.random.default_rng(0).normal(size=(5, 3, 60))
    expected = WindowFeatures(50.0).fit_transform(X)
    np.testing.assert_allclose(SignalFeatures("statistics", sampling_rate=50.0).fit_transform(X), expected, rtol=1e-5)


def test_ranks_are_normal_scores_of_the_statistics():
    X = np.random.default_rng(0).normal(size=(25, 2, 60))
    X[:, 1] = X[0, 1]  # one signal in all cases: equal statistics, rank in the middle
    statistics = SignalFeatures("statistics", sampling_rate=50.0).fit_transform(X)
    expected = norm.ppf(rankdata(statistics, axis=0) / 26)
    np.testing.assert_allclose(SignalFeatures("ranks", sampling_rate=50.0).fit_transform(X), expected, atol=1e-6)


def test_ranks_of_new_values_are_interpolated_and_bounded():
    reference = np.array([[0.0, 5.0], [1.0, 5.0], [10.0, 5.0]])
    scores = normal_scores(np.array([[-9.0, 4.0], [0.5, 5.0], [99.0, 6.0]]), reference)
    expected = norm.ppf(np.array([[1.0, 1.0], [1.5, 2.0], [3.0, 3.0]]) / 4)
    np.testing.assert_allclose(scores, expected)


def test_ranks_do_not_depend_on_a_monotone_transform():
    rng = np.random.default_rng(0)
    reference, values = np.sort(rng.normal(size=(40, 3)), axis=0), rng.permutation(40)[:9]
    scores = normal_scores(reference[values], reference)
    np.testing.assert_allclose(normal_scores(np.exp(3 * reference[values]), np.exp(3 * reference)), scores)


def test_rows_do_not_depend_on_others(kind):
    X = signals_of([300, 700, None, 300, 450, 640])
    features = made(kind, X)
    together = features.transform(X)
    for row in (0, 1, 3, 5):
        np.testing.assert_allclose(features.transform([X[row]])[0], together[row], rtol=1e-5, atol=1e-6)
    assert np.isnan(together[2]).all()
    assert np.isfinite(together[[0, 1, 3, 4, 5]]).all()
    assert together.shape[1] == features.n_features_out_ == len(set(features.get_feature_names_out()))


def test_short_and_constant_signals_have_finite_features(kind):
    X = [*signals_of([300] * 12), np.ones((2, 300)), np.zeros((2, 5)), np.ones((2, 1))]
    assert np.isfinite(made(kind, X).transform(X)).all()


def test_one_signal_of_one_channel_is_enough(kind):
    X = signals_of([400], n_channels=1)
    assert made(kind, X).transform(X).shape[0] == 1


def test_random_convolutions_leave_the_global_random_state():
    X = np.random.default_rng(0).normal(size=(4, 1, 60))
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    SignalFeatures("minirocket").fit_transform(X)
    assert np.random.random() == expected  # noqa: NPY002


def test_minirocket_of_equal_lengths_is_that_of_aeon():
    X = np.random.default_rng(0).normal(size=(10, 2, 80))
    X = (X - X.mean(axis=(0, 2), keepdims=True)) / X.std(axis=(0, 2), keepdims=True)
    expected = MiniRocket(2500, random_state=0).fit_transform(X.astype(np.float32))
    np.testing.assert_allclose(SignalFeatures("minirocket").fit_transform(X), expected, atol=2 / 80)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "aeon", None)
    with pytest.raises(ImportError, match=r"install .*\[timeseries\]"):
        SignalFeatures("minirocket").fit(np.zeros((2, 1, 20)))


def test_kinds_side_by_side():
    X = np.random.default_rng(0).normal(size=(5, 1, 1500))
    both = SignalFeatures("statistics+mfcc", sampling_rate=1000.0).fit(X)
    parts = [SignalFeatures(kind, sampling_rate=1000.0).fit(X) for kind in ("statistics", "mfcc")]
    twenty, forty = (part.transform(X) for part in parts)
    np.testing.assert_array_equal(both.transform(X), np.hstack([twenty, twenty, forty]))
    names = [list(part.get_feature_names_out()) for part in parts]
    assert list(both.get_feature_names_out()) == [*names[0], *(f"{name}_2" for name in names[0]), *names[1]]


def test_kinds_side_by_side_have_the_same_weight_in_a_kernel():
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(size=(6, 4)), rng.normal(size=(6, 400))
    rows = np.hstack([narrow, wide])[:, side_by_side([4, 400])]
    expected = narrow @ narrow.T / 4 + wide @ wide.T / 400
    np.testing.assert_allclose(rows @ rows.T / 400, expected)


@pytest.mark.parametrize("kind", ["wavelet", "", None, "statistics+wavelet"])
def test_unknown_kind(kind):
    with pytest.raises(ValueError, match="kind must be one of"):
        SignalFeatures(kind).fit(np.zeros((2, 1, 20)))


def test_errors_name_case_sensor_and_file():
    broken = np.ones((1, 30))
    broken[0, 4] = np.nan
    signals = SensorSignals([np.ones((1, 30)), broken], 50.0, ("x",), files=["a.wav", "b.wav"])
    sensor = Recordings({"left": signals}, ids=["monday", "tuesday"])["left"]
    with pytest.raises(ValueError, match=r"row 'tuesday', sensor 'left' \(file 'b.wav'\) has 1 NaN"):
        SignalFeatures("statistics").fit(sensor)


def test_other_mistakes():
    features = SignalFeatures("statistics", sampling_rate=50.0).fit(np.random.default_rng(0).normal(size=(3, 2, 40)))
    with pytest.raises(ValueError, match="channels, but row 0 has 2 and row 1 has 1"):
        features.transform([np.zeros((2, 40)), np.zeros((1, 40))])
    with pytest.raises(ValueError, match="has 1 channels"):
        features.transform(np.zeros((3, 1, 40)))
    with pytest.raises(ValueError, match=r"100 Hz, .* 50 Hz"):
        features.transform(SensorSignals([np.zeros((2, 40))], 100.0, ("x", "y")))
    with pytest.raises(ValueError, match=r"No row .*'signal'"):
        SignalFeatures("statistics").fit([None, None])
    with pytest.raises(ValueError, match="sampling_rate must be"):
        SignalFeatures("statistics", sampling_rate=-1.0).fit(np.zeros((3, 1, 40)))
    with pytest.raises(ValueError, match=r"row 1, .* real numbers"):
        SignalFeatures("statistics").fit([np.zeros((1, 9)), np.array([["a"]])])


def test_features_are_kept_by_content(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(6, 1, 40))
    features = SignalFeatures("statistics", sampling_rate=50.0, memory=tmp_path).fit(X)
    first = features.transform(X)

    def fail(*_):
        raise AssertionError("computed again")

    for extractor in features._extractors:
        monkeypatch.setattr(type(extractor), "features", fail)
    np.testing.assert_array_equal(features.transform(list(X.copy())), first)  # the same samples in another container
    with pytest.raises(AssertionError, match="computed again"):
        features.transform(X + 1e-12)
    other = SignalFeatures("statistics", sampling_rate=60.0, memory=tmp_path).fit(X)
    with pytest.raises(AssertionError, match="computed again"):
        other.transform(X)


def test_the_cache_in_memory_keeps_the_last_features(monkeypatch):
    monkeypatch.setattr(caching, "MEMORY_BYTES", 100)
    cache, computed = FeatureCache(), []

    def made(key):
        def compute():
            computed.append(key)
            return np.full(10, float(len(key)))  # 80 bytes

        return cache.get(key, compute)

    for key in ("a", "a", "bb", "bb", "a"):
        found = made(key)
        np.testing.assert_array_equal(found, np.full(10, len(key)))
        found[:] = 0.0  # what the cache holds is not changed
    assert computed == ["a", "bb", "a"]


def test_the_folder_of_the_cache_holds_arrays_only_and_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "FOLDER_BYTES", 600)
    for number in range(5):
        FeatureCache(tmp_path / "cache").get(f"key{number}", lambda n=number: np.full(10, float(n)))  # 208 bytes
    files = sorted(file.name for file in (tmp_path / "cache").iterdir())
    assert files == ["key3.npy", "key4.npy"]
    (tmp_path / "cache" / "key4.npy").write_bytes(b"damaged")
    assert FeatureCache(tmp_path / "cache").get("key4", lambda: np.ones(2)).tolist() == [1.0, 1.0]
    np.save(tmp_path / "cache" / "key3.npy", np.array([print], dtype=object), allow_pickle=True)
    assert FeatureCache(tmp_path / "cache").get("key3", lambda: np.ones(2)).tolist() == [1.0, 1.0]
    (tmp_path / "file").write_text("not a folder")
    assert FeatureCache(tmp_path / "file").get("key", lambda: np.ones(2)).tolist() == [1.0, 1.0]


def test_content_hash_tells_shapes_and_gaps_apart():
    flat = np.arange(12.0)
    forms = [[flat.reshape(1, 12)], [flat.reshape(2, 6)], [flat[:6].reshape(1, 6), flat[6:].reshape(1, 6)]]
    forms += [[flat.reshape(1, 12), None], [None, flat.reshape(1, 12)]]
    hashes = {content_hash(signals := as_sensor_signals(form), len(signals.channel_names)) for form in forms}
    assert len(hashes) == len(forms)


def test_blocks_hold_every_present_signal_once():
    X = signals_of([5, 7, None, 5, 9, 5, 7])
    blocks = list(blocks_of_equal_length(as_sensor_signals(X), range(7), 2, block_samples=30))
    assert sorted(row for block in blocks for row in block.rows.tolist()) == [0, 1, 3, 4, 5, 6]
    assert len(blocks) > 3  # not all in memory at the same time
    for block in blocks:
        for row, signal in zip(block.rows, block.signals, strict=True):
            np.testing.assert_array_equal(signal, X[row])


def test_windows_cover_the_signal():
    signal = np.arange(23.0).reshape(1, 1, 23)
    parts = windows(signal, 10)
    assert len(parts) == 3
    assert set(np.concatenate([part.ravel() for part in parts]).tolist()) == set(range(23))
    assert len(windows(signal, 23)) == 1


def test_extension_repeats_the_last_sample():
    np.testing.assert_array_equal(extend(np.array([[[1.0, 2.0]]]), 4), [[[1.0, 2.0, 2.0, 2.0]]])
    assert reference_length([np.zeros((1, n)) for n in (3, *[50] * 30)], 9) == 50
    assert reference_length([np.zeros((1, 3))], 9) == 9


def test_in_views_transformer_names_are_kept():
    X = {"a": np.random.default_rng(0).normal(size=(4, 1, 40)), "b": np.random.default_rng(1).normal(size=(4, 2, 30))}
    to_views = views_transformer(a=(SignalFeatures("statistics"), "a"), b=(SignalFeatures("statistics"), "b"))
    frame = to_views.fit_transform(X)
    assert list(frame.columns[:2]) == ["a__signal_mean", "a__signal_std"]
    assert frame.shape == (4, 60)
