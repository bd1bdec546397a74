"""What compilers report: an error of the language is told from one that a missing library brings."""

import pytest

from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Compiled, Compiler, version_of


def compiler(language: str) -> Compiler:
    known = language_of(language)
    assert isinstance(known, Compiled)
    return known.compiler


IMPORTS = """import org.json.JSONObject;
import static spark.Spark.*;
import javax.annotation.PostConstruct;
import java.util.List;
public class Shop extends Base { }
"""
JAVA = """\
Shop.java:1: error: package org.json does not exist
Shop.java:2: error: package spark does not exist
"""


def java(said: str, code: str = IMPORTS, before: str = JAVA) -> list[str]:
    return compiler("java").errors(code, before + said)[0]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Shop.java:7: error: cannot find symbol\n  symbol:   class JSONObject\n  location: class Shop\n",
        "Shop.java:7: error: cannot find symbol\n  symbol:   method get(java.lang.String)\n  location: class Shop\n",
        "Shop.java:3: error: cannot find symbol\n  symbol:   class PostConstruct\n  location: package javax.annotation\n",
        "Shop.java:9: error: class Basket is public, should be declared in a file named Basket.java\n",
        "Shop.java:4: error: cannot find symbol\n  symbol: class Base\n"
        "Shop.java:9: error: method does not override or implement a method from a supertype\n",
    ],
)
def test_java_without_its_libraries_is_java(said: str) -> None:
    assert java(said) == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Shop.java:6: error: cannot find symbol\n  symbol:   method toList()\n"
            "  location: interface java.util.stream.Stream<T>\n",
            "line 6: cannot find symbol symbol: method toList() location: interface java.util.stream.Stream<T>",
        ),
        (
            "Shop.java:6: error: cannot find symbol\n  symbol:   method all()\n"
            "  location: variable in of type java.io.Reader\n",
            "line 6: cannot find symbol symbol: method all() location: variable in of type java.io.Reader",
        ),
        (
            "Shop.java:2: error: cannot find symbol\n  symbol:   class Scope\n  location: package java.util\n",
            "line 2: cannot find symbol symbol: class Scope location: package java.util",
        ),
        ("Shop.java:1: error: package java.sound does not exist\n", "line 1: package java.sound does not exist"),
        ("Shop.java:6: error: ';' expected\n", "line 6: ';' expected"),
        (
            "Shop.java:6: error: incompatible types: java.lang.String cannot be converted to int\n",
            "line 6: incompatible types: java.lang.String cannot be converted to int",
        ),
    ],
)
def test_an_error_of_java_stays_one_beside_missing_libraries(said: str, reason: str) -> None:
    assert java(said) == [reason]


@pytest.mark.parametrize(
    ("symbol", "place", "excused"),
    [
        ("class Logger", "class Shop", True),
        ("variable Logger", "class Shop", True),  # javac takes what stands before a dot for a variable
        ("variable total", "class Shop", False),
        ("method total()", "class Shop", False),
        ("method total()", "variable shop of type Shop", False),
    ],
)
def test_a_missing_package_excuses_only_types(symbol: str, place: str, excused: bool) -> None:
    said = f"Shop.java:7: error: cannot find symbol\n  symbol:   {symbol}\n  location: {place}\n"
    absent = "Shop.java:1: error: package spark does not exist\n"
    assert (java(said, "import spark.*;\nclass Shop { }", absent) == []) is excused
    extends = "import spark.*;\nclass Shop extends Base { }"
    of_base = "Shop.java:2: error: cannot find symbol\n  symbol: class Base\n"
    assert java(said, extends, absent + of_base) == [], "a type that is not there may have it"
    static = java(said, "import static spark.Spark.*;\nclass Shop { }", absent)
    assert (static == []) is not place.startswith("variable")


def test_a_name_that_nothing_imports_is_an_error_of_java() -> None:
    said = "Shop.java:7: error: cannot find symbol\n  symbol:   class Logger\n  location: class Shop\n"
    one = IMPORTS.replace("import static spark.Spark.*;\n", "")
    assert len(java(said, one, "Shop.java:1: error: package org.json does not exist\n")) == 1
    assert java(said) == [], "it may come from what is imported as a whole"
    lombok = "import lombok.Data;\n@Data class Shop { }"
    member = "Shop.java:7: error: cannot find symbol\n  symbol:   method getName()\n  location: class Shop\n"
    assert java(member, lombok, "Shop.java:1: error: package lombok does not exist\n") == []
    assert len(java(member, "class Shop { }", "")) == 1


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("package a;\npublic final class Shop { }", "Shop.java"),
        ("class Shop { }", "Program.java"),
        ("public record Point(int x) { }", "Point.java"),
        ("public class Übung { }", "Program.java"),
        (f"public class {'A' * 5000} {{ }}", "Program.java"),
        ("public class ../../x { }", "Program.java"),
    ],
)
def test_a_java_file_is_named_after_its_public_type(code: str, name: str) -> None:
    assert compiler("java").file_name(code) == name


MISSING = "a.rs:1:5: error[E0432]: unresolved import `clap`: use of unresolved module or unlinked crate `clap`\n"


def rust(
    said: str, code: str = "use clap::Parser;\nstruct Config; impl Parser for Config {}", before: str = MISSING
) -> list[str]:
    return compiler("rust").errors(code, before + said)[0]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "a.rs:2:1: error[E0433]: failed to resolve: use of undeclared crate or module `tokio`: use of undeclared crate\n",
        "a.rs:2:1: error[E0463]: can't find crate for `rand`: can't find crate\n",
        "a.rs:2:1: error[E0583]: file not found for module `models`\n",
        "a.rs:2:1: error[E0599]: no function named `parse` found for struct `Config` in the current scope\n",
        "a.rs:2:1: error: cannot find attribute `arg` in this scope\n",
        "a.rs:2:1: error[E0282]: type annotations needed\n",
    ],
)
def test_rust_without_its_crates_is_rust(said: str) -> None:
    assert rust(said) == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("a.rs:2:1: error: expected `;`, found `}`\n", "line 2: expected `;`, found `}`"),
        (
            "a.rs:2:1: error[E0432]: unresolved import `std::fs::watch`: no `watch` in `fs`\n",
            "line 2: unresolved import `std::fs::watch`: no `watch` in `fs`",
        ),
        (
            "a.rs:2:1: error[E0433]: failed to resolve: use of undeclared type `HashMap`\n",
            "line 2: failed to resolve: use of undeclared type `HashMap`",
        ),
        ("a.rs:2:1: error[E0425]: cannot find value `x`\n", "line 2: cannot find value `x`"),
        (
            "a.rs:2:1: error[E0599]: no method named `lines` found for struct `StdinLock<'a>`\n",
            "line 2: no method named `lines` found for struct `StdinLock<'a>`",
        ),
        ("a.rs:2:1: error[E0308]: mismatched types: expected `u8`\n", "line 2: mismatched types: expected `u8`"),
    ],
)
def test_an_error_of_rust_stays_one_beside_missing_crates(said: str, reason: str) -> None:
    assert rust(said) == [reason]


def test_a_trait_that_is_missing_brings_methods_of_any_type() -> None:
    said = "a.rs:2:1: error[E0599]: no method named `join` found for struct `Map<I, F>`\n"
    before = MISSING.replace("clap", "itertools")
    assert rust(said, "use itertools::Itertools;", before) == []
    assert rust(said, "use itertools::prelude::*;", before) == []
    assert len(rust(said, "use itertools::zip; fn f() { zip() }", before)) == 1


@pytest.mark.parametrize(
    ("version", "editions"),
    [("1.20", ["2015"]), ("1.40.0", ["2018"]), ("1.60.0", ["2021", "2018"]), ("1.87.0", ["2021", "2024", "2018"])],
)
def test_the_editions_of_a_version_of_rust(version: str, editions: list[str]) -> None:
    assert [options[-1] for options in compiler("rust").options(version_of(version), "/r")] == editions


@pytest.mark.parametrize(
    ("said", "errors"),
    [
        (
            "  File \"a.py\", line 3\n    x = (\n        ^\nSyntaxError: '(' was never closed\n",
            ["line 3: '(' was never closed"],
        ),
        (
            "Sorry: ValueError: source code string cannot contain null bytes",
            ["line ?: source code string cannot contain null bytes"],
        ),
        ("Sorry: MemoryError: ", []),
        ("OSError: [Errno 28] No space left on device", []),
        ("", []),
    ],
)
def test_what_is_an_error_of_python(said: str, errors: list[str]) -> None:
    assert compiler("python").errors("", said) == (errors, [])


@pytest.mark.parametrize(
    ("text", "version"),
    [("jdk11", (11,)), ("1.86.0", (1, 86, 0)), ("Python 3.13", (3, 13)), ("javac 17.0.15", (17, 0, 15))],
)
def test_versions_are_read_in_any_spelling(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_the_release_of_java() -> None:
    assert compiler("java").options((1, 8), "")[0][-1] == "8" and compiler("java").options((21,), "")[0][-1] == "21"


def test_a_text_without_a_version() -> None:
    with pytest.raises(ValueError, match="'newest' names no version"):
        version_of("newest")
    with pytest.raises(ValueError, match="names no version"):
        version_of("9" * 5000)


@pytest.mark.parametrize("language", ["java", "rust", "python"])
def test_reports_of_any_length_are_read_in_time_and_in_one_line(language: str) -> None:
    long = "x" * 100_000
    for said in (
        f"{long}\n" * 3,
        f"A.java:1: error: {long}\n  symbol: class {long}\n",
        f"a.rs:1:1: error: {long}\n",
        JAVA * 3000,
    ):
        for code in ("use a::" * 20_000, "import a." * 20_000, "public final " * 15_000, "extends " * 20_000):
            own, foreign = compiler(language).errors(code, said)
            assert all(len(reason) <= 200 and "\n" not in reason for reason in own + foreign)
