"""A pass that is shared out gives the same bits as in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextUnits, pack_corpus, unpack_corpus
from sslbench.engine.features import Streams, Template
from sslbench.engine.graph import neighbors
from sslbench.engine.spread import over, pack, pass_at, unpack, using_broker
from sslbench.experiment.inputs.problem import predicted
from sslbench.plugins import registry
from sslbench.taggers import PosteriorTagger
from sslbench_methods.jess_cm.models import CountPass
from support.brokers import BytesBroker
from support.jess_cm_toys import TEMPLATES, assert_same, problem, raw_text, trained

LONG = [*TEMPLATES, "word[-2]|word[-1]|word[0]"]
LEAST = "sslbench.engine.corpus.units.LEAST"


def test_arrays_travel_as_they_are() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([np.nan, -0.0]),
        "none": np.empty((0, 4), np.float32),
        "mask": np.array([True, False]),
    }
    found, facts = unpack(pack((arrays, {"x": [1, None, "é"]})))
    assert facts == {"x": [1, None, "é"]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable
    for damaged in (b"", b"no", pack((arrays, {}))[:-3]):
        with pytest.raises(ValueError, match=r"not packed arrays|buffer"):
            unpack(damaged)


def test_a_corpus_travels_with_its_own_words() -> None:
    part = raw_text().between(50, 53)
    found = unpack_corpus(*unpack(pack(pack_corpus(part))))
    assert found.column("word").strings() == part.column("word").strings()
    assert len(found.column("word").vocabulary) == len(set(part.column("word").strings()))
    np.testing.assert_array_equal(found.offsets, part.offsets)
    odd = Corpus.from_sentences({"word": [["a\ud800", "\n"]], "pos": [["", "b"]]})
    found = unpack_corpus(*unpack(pack(pack_corpus(odd))))
    assert found.sentence(0, "word") == ["a\ud800", "\n"]
    arrays, facts = pack_corpus(part)
    for name, array in (("codes0", arrays["codes0"] + 99), ("offsets", arrays["offsets"][:-1])):
        with pytest.raises(ValueError):
            unpack_corpus({**arrays, name: array}, facts)


def test_units_depend_on_the_text_alone() -> None:
    text = raw_text()
    units = TextUnits(CorpusShards(text, 40), 100)
    assert units.several
    found = []
    while (unit := units.get(len(found))) is not None:
        found.append(unit)
    assert units.get(len(found) + 3) is None
    assert [u for c in found for u in c.column("word").strings()] == text.column("word").strings()
    assert all(60 < unit.n_tokens <= 100 for unit in found[:-1])
    for number in (2, 0, 0, len(found) - 1, 1):  # in any order
        again = units.get(number)
        assert again is not None
        np.testing.assert_array_equal(
            again.column("word").codes, found[number].column("word").codes
        )
    assert not TextUnits(CorpusShards(text), 10**6).several
    assert TextUnits([]).get(0) is None
    strangers = [raw_text().between(0, 2), raw_text().between(2, 4)]  # two vocabularies
    assert [TextUnits(strangers).get(number) is None for number in range(3)] == [False, False, True]


@pytest.mark.parametrize("least", [1, 37, 100])
@pytest.mark.parametrize("min_count", [1, 3])
def test_dictionaries_of_units_put_together(least: int, min_count: int) -> None:
    """Against one that reads the whole text."""
    text, templates = raw_text(), [Template.parse(each) for each in LONG]
    whole = Streams(templates)
    whole.learn(text)
    whole._drop_rare(min_count)
    for broker in (None, BytesBroker()):
        with using_broker(broker):
            found = Streams.fit(templates, TextUnits(CorpusShards(text, 90), least), min_count)
        (arrays, facts), (expected, same) = found.arrays(), whole.arrays()
        assert facts == same
        assert arrays.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[name], array, err_msg=name)
        np.testing.assert_array_equal(found.encode(text).codes, whole.encode(text).codes)


@pytest.mark.parametrize("most", [0, 2, 10**9])
def test_jess_cm(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the workers end in the middle of each pass."""
    monkeypatch.setattr(LEAST, 100)
    expected, broker = trained(), BytesBroker(most)
    with using_broker(broker):
        found = trained()
    assert {name for name, _ in broker.done} == (
        set() if most == 0 else {"SymbolPass", "CountPass"}
    )
    assert_same(found, expected)


def test_units_hold_what_their_text_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of units are those of the whole text, up to the order of additions."""
    tagger, text = trained(), problem().unlabeled
    whole = tagger.models.expected_counts(tagger.crf, text)
    units = tagger.models.expected_counts(tagger.crf, TextUnits(text, 50))
    assert units.log_z == pytest.approx(whole.log_z, rel=1e-12)
    for name, array in whole.arrays.items():
        np.testing.assert_allclose(units.arrays[name], array, rtol=1e-5, atol=1e-5)


def test_counts_that_go_on_after_some_units() -> None:
    tagger, broker = trained(), BytesBroker()
    units = TextUnits(problem().unlabeled, 50)
    kept: list[tuple[int, dict[str, np.ndarray]]] = []

    def after(done: int) -> None:
        counts = tagger.models.counts
        copies = {name: array.copy() for name, array in counts.arrays.items()}
        kept.append((done, copies))

    tagger.models.expected_counts(tagger.crf, units, after_unit=after)
    done, arrays = kept[2]
    tagger.models.forget_counts()
    for name, array in tagger.models.counts.arrays.items():
        array[...] = arrays[name]
    with using_broker(broker):
        found = tagger.models.expected_counts(tagger.crf, units, begin=done)
    assert [number for _, number in broker.done] == [each[0] - 1 for each in kept[3:]]
    for name, array in kept[-1][1].items():
        np.testing.assert_array_equal(found.arrays[name], array)


def test_labels_of_much_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.crf.labeling.UNIT", 70)
    jess_cm, text = trained(), raw_text(200)
    for tagger in (jess_cm, PosteriorTagger(jess_cm.crf, "x")):
        broker, expected = BytesBroker(), predicted(tagger, text)
        with using_broker(broker):
            np.testing.assert_array_equal(predicted(tagger, text), expected)
        assert len(broker.done) > 5
    no_factors = problem().model.prepare(*plain_arguments())
    no_factors.weights[:] = np.random.default_rng(0).normal(size=len(no_factors.weights))
    broker, expected = BytesBroker(), predicted(no_factors, text)
    with using_broker(broker):
        np.testing.assert_array_equal(predicted(no_factors, text), expected)
    assert broker.done


def plain_arguments() -> tuple[object, ...]:
    own = problem()
    return own.featurizer, own.labeled, own.label_codes(own.labeled), own.labels


def test_neighbors_of_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(150, 60, 0.2, format="csr", dtype=np.float32, random_state=rng)
    expected = neighbors.nearest(X, 5)
    monkeypatch.setattr(neighbors, "BLOCK", 40)
    for most in (1, 9):
        broker = BytesBroker(most)
        with using_broker(broker):
            found = neighbors.nearest(X, 5)
        assert len(broker.done) == min(most, 4)
        np.testing.assert_array_equal(found.index, expected.index)
        np.testing.assert_array_equal(found.similarity, expected.similarity)


def test_indices_from_elsewhere_are_checked() -> None:
    """Kernels read without bounds checks."""
    index = neighbors.build_index(sparse.csr_matrix(np.ones((4, 3), np.float32)))[0]
    arrays, facts = neighbors.NeighborPass(index, 2).packed()
    for name, array in (
        ("column", arrays["column"] + np.int32(4)),
        ("row", arrays["row"] - np.int32(1)),
        ("ptr", arrays["ptr"] + 1),
        ("tail", arrays["tail"][:-1]),
    ):
        with pytest.raises(ValueError):
            neighbors.NeighborPass.unpacked({**arrays, name: array}, facts)
    with pytest.raises(ValueError, match="rows"):
        neighbors.NeighborPass.unpacked(arrays, facts).run(np.array([4]))


def test_without_anything_to_share_out_no_one_is_asked() -> None:
    broker = BytesBroker()
    with using_broker(broker):
        Streams.fit([Template.parse("word[0]")], CorpusShards(raw_text()))
    assert broker.done == []
    assert list(over(neighbors.NeighborPass(None, 1), neighbors.Rows(0))) == []  # type: ignore[arg-type]


def test_a_pass_is_imported_only_from_known_packages(tmp_path: Path) -> None:
    assert pass_at(CountPass.target(), {"sslbench_methods"}) is CountPass
    trap = tmp_path / "trap_of_passes.py"
    trap.write_text("raise SystemExit('imported')")
    sys.path.insert(0, str(tmp_path))
    try:
        for target in ("trap_of_passes:P", "os:system", "sslbench_methods", ":P", "a.b:c.d"):
            with pytest.raises(ValueError, match="no pass of sslbench"):
                pass_at(target, {"sslbench"})
    finally:
        sys.path.remove(str(tmp_path))
    for name in ("over", "Pass.target", "pack", "nothing"):
        with pytest.raises(ValueError, match="is no pass"):
            pass_at(f"sslbench.engine.spread:{name}", {"sslbench"})


def test_the_packages_of_installed_plugins() -> None:
    assert {"sslbench", "sslbench_methods", "sslbench_datasets"} <= registry().packages
    assert "os" not in registry().packages
