"""The language that code must be in: what becomes of the classifier's guess, and that nothing fails without one."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract, language_of, languages
from codechat.studies.multicodeif import classifier
from codechat.studies.multicodeif.constraints import Constraint, Finding, Harness, constraint_type

JAVASCRIPT = "const add = (a, b) => a + b;\nconsole.log(add(1, 2));\n"
TYPESCRIPT = "const add = (a: number): number => a;\n"


def check(language: str, code: str, harness: Harness = "guarded") -> Finding:
    kind = constraint_type("language_type")
    found = Constraint(kind.name, kind.read(language)).check(code, harness)
    assert len(found.reason.splitlines()) == 1
    return found


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No test leaves its stand-in to another."""
    classifier._classifier.cache_clear()
    yield
    classifier._classifier.cache_clear()


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, float]]:
    """What a stand-in for the classifier says of each code; of every other, that it is too short."""
    said: dict[str, tuple[str, float]] = {}
    module, loaded = ModuleType("magika"), []

    class Magika:
        def __init__(self, prediction_mode: str) -> None:
            assert prediction_mode == "best guess"
            loaded.append(self)
            assert len(loaded) == 1, "the model is loaded once"

        def identify_bytes(self, content: bytes) -> SimpleNamespace:
            label, score = said.get(content.decode("utf-8", "replace"), ("undefined", 1.0))
            output = "txt" if label == "undefined" else label
            return SimpleNamespace(dl=SimpleNamespace(label=label), output=SimpleNamespace(label=output), score=score)

    vars(module).update(Magika=Magika, PredictionMode=SimpleNamespace(BEST_GUESS="best guess"))
    monkeypatch.setitem(sys.modules, "magika", module)
    return said


def test_without_the_classifier_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "magika", None)
    for harness in ("official", "guarded"):
        found = check("rust", "fn main() {}", harness)
        assert found.met is None and "pip install 'codechat[classify]'" in found.reason


@pytest.mark.parametrize("harness", ["official", "guarded"])
@pytest.mark.parametrize(
    ("language", "label"),
    [("c++", "cpp"), ("C#", "cs"), ("Prolog", "prolog"), ("golang", "go"), ("javascript", "javascript")],
)
def test_a_language_by_any_name_and_its_label(
    guesses: dict[str, tuple[str, float]], language: str, label: str, harness: Harness
) -> None:
    guesses["some code"] = (label, 0.97)
    assert check(language, "some code", harness) == Finding(True, f"the classifier takes it for {label} (0.97)")
    guesses["some code"] = ("kotlin", 0.97)
    assert check(language, "some code", harness).met is False


def test_code_that_is_too_short_is_no_other_language(guesses: dict[str, tuple[str, float]]) -> None:
    assert check("rust", "x", "official").met is False
    assert check("rust", "x") == Finding(None, "the code is too short to tell its language")
    assert check("rust", " ").met is False and check("rust", "", "official").met is False


def test_a_language_that_contains_the_asked_one(guesses: dict[str, tuple[str, float]]) -> None:
    pytest.importorskip("tree_sitter_javascript", reason="needs codechat[constraints]")
    guesses[JAVASCRIPT] = guesses[TYPESCRIPT] = ("typescript", 0.95)
    assert check("javascript", JAVASCRIPT, "official").met is False
    assert check("javascript", JAVASCRIPT).met is True
    assert check("javascript", TYPESCRIPT).met is False
    assert check("typescript", TYPESCRIPT, "official").met is True


def test_a_guess_that_is_not_sure_stands_against_no_grammar(guesses: dict[str, tuple[str, float]]) -> None:
    pytest.importorskip("tree_sitter_haskell", reason="needs codechat[constraints]")
    short = "values :: [Float] -> [Float]\nvalues = map abs\n"
    guesses[short] = ("batch", 0.23)
    assert check("haskell", short).met is True
    guesses[short] = ("batch", 0.95)
    assert check("haskell", short).met is False
    both = "x = 1\n"
    guesses[both] = ("python", 0.5)
    assert check("julia", both).met is False, "it is Python as well"
    guesses["tanh.(array)\n"] = ("python", 0.5)
    assert check("julia", "tanh.(array)\n").met is None


def test_an_unknown_language_is_a_mistake() -> None:
    for raw, problem in (
        ("klingon", "no language is called 'klingon'"),
        ("", "is not a language"),
        ("a;b", "is not a"),
    ):
        with pytest.raises(ValueError, match=problem):
            constraint_type("language_type").read(raw)


def test_code_without_a_fence_is_found_in_every_language() -> None:
    code = "local function add(a, b)\n  return a + b\nend"
    for language in ("lua", "julia", "prolog", "coffeescript"):
        assert extract(f"Here it is.\n\n{code}\n", Target(language)).code == code


@pytest.mark.skipif(find_spec("magika") is None, reason="needs codechat[classify]")
def test_the_classifier_itself() -> None:
    rust = 'fn main() {\n    let words = vec!["a", "b"];\n    println!("{}", words.len());\n}\n'
    for harness in ("official", "guarded"):
        assert check("rust", rust, harness).met is True
        assert check("python", rust, harness).met is False
    known = set(map(str, classifier._classifier().get_output_content_types()))
    for language in languages():
        assert set(classifier.labels_of(language_of(language.names[0]))) <= known
    for hostile in ("\ud800" * 50_000, "(" * 200, "\0" * 100_000, "é" * 199_999):
        assert check("rust", hostile).reason
