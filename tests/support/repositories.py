"""Small git repositories, and tasks on them in SR-Eval's and DevEval's form."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.datasets.tasks import Workspace
from codechat.studies.sreval.suite_maven import COMMANDS, Toolchain

FIX = "the-fix-of-the-future"
WHEN = "2024-05-06T07:08:09Z"


def git(folder: Path, *words: str, data: bytes | None = None) -> str:
    """The output of a git command of the test's own."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN,
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=folder, env=environment, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


@dataclass(frozen=True)
class Repository:
    """A clone with branches, a tag, a remote and a fix, all after the commit to work at."""

    folder: Path
    commit: str
    fix: str

    @property
    def workspace(self) -> Workspace:
        return Workspace(str(self.folder), self.commit)


def make_repository(folder: Path, files: dict[str, str] | None = None) -> Repository:
    """A repository of three commits: a first one, the one to work at, and the fix."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "README.md").write_text("# A counter\n\nIt counts.\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    source = {
        "src/counter.py": "def count(n):\n    return n + 2\n",
        "src/more/notes.txt": "one\ntwo\nthree\n",
        "run.sh": "#!/bin/sh\necho ran\n",
    }
    for name, text in (source if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("README.md")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a counter")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "counter.py").write_text(f"def count(n):\n    return n + 1  # {FIX}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", FIX)
    fix = git(folder, "rev-parse", "HEAD")
    git(folder, "tag", "-a", "v2", "-m", FIX)
    git(folder, "branch", "later")
    git(folder, "update-ref", "refs/remotes/origin/main", fix)
    git(folder, "stash", "list")
    return Repository(folder, commit, fix)


PROJECT = "Text/shop"
FILES = {
    "shop/__init__.py": "",
    "shop/basket.py": '''"""A basket."""

import functools

RATE = 2


def loud(function):
    @functools.wraps(function)
    def call(*given):
        return function(*given)

    call.loud = True
    return call


class Basket:
    def __init__(self, *prices):
        self.prices = prices

    @loud
    def total(self, rate=RATE):
        """The sum."""
        return rate * sum(self.prices)

    def first(self):
        return self.prices[0]
''',
    "tests/test_basket.py": """import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def setUp(self):
        self.basket = Basket(1, -2)

    def test_total(self):
        self.assertEqual(self.basket.total(), -2)

    # the end of the class


def test_first():
    assert Basket(3).first() == 3
""",
}
TOTAL = {
    "hash_id": "shop.basket.Basket.total",
    "total_turn": 3,
    "turn_datas": [
        {
            "turn_num": 1,
            "instruction": "Write total(self, rate), the sum times the rate.",
            "solution": "@loud\ndef total(self, rate=RATE):\n    return rate * sum(self.prices)",
            "test": "def test_total_turn1(self):\n    self.assertEqual(self.basket.total(), -2)",
        },
        {
            "turn_num": 2,
            "instruction": "Leave negative prices out.",
            "solution": "def total(self, rate=RATE):\n    return rate * sum(each for each in self.prices if each >= 0)",
            "test": "def test_total_turn2(self):\n    self.assertEqual(self.basket.total(), 2)\n\n"
            "def test_loud_turn2(self):\n    self.assertTrue(self.basket.total.loud)",
        },
        {
            "turn_num": 3,
            "instruction": "Give a float.",
            "solution": "    def total(self, rate=RATE):\n"
            "        return float(rate * sum(each for each in self.prices if each >= 0))",
            "test": "def test_total_turn3(self):\n    self.assertIsInstance(self.basket.total(), float)",
        },
    ],
}
PLACE = {
    "hash_id": "shop.basket.Basket.total",
    "namespace": "shop.basket.Basket.total",
    "project_path": PROJECT,
    "completion_path": f"{PROJECT}/shop/basket.py",
    "signature_position": [22, 22],
    "body_position": [24, 24],
    "indent": 8,
    "tests": ["tests/test_basket.py::BasketTest::test_total"],
}


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def write_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_shop(root: Path) -> list[str]:
    """The repository, its tasks and their places below a folder; the words that choose them."""
    write_files(root / "repos" / PROJECT, FILES)
    write_lines(root / "tasks.jsonl", TOTAL)
    write_lines(root / "places.jsonl", PLACE)
    return [
        "dataset=sreval_python_repository",
        f"dataset.path={root}/tasks.jsonl",
        f"dataset.places={root}/places.jsonl",
        f"dataset.repos={root}/repos",
    ]


METHOD = """    public static int twice(int x) {
        return x + x;
    }"""
TEST = """    @Test
    void doubles() {
        assertEquals(8, Twice.twice(4));
    }"""
FAKE = """#!/bin/sh
echo "[INFO] arguments: $*"
file=src/main/java/shop/Twice.java
if ! grep -q 'twice(int x)' $file; then echo "[ERROR] COMPILATION ERROR : "; echo "[ERROR] ';' expected"; exit 1; fi
if grep -q 'lacking' pom.xml; then echo "[ERROR] a plugin could not be resolved"; exit 1; fi
if grep -q 'exit(0)' $file; then echo "[ERROR] The forked VM terminated"; exit 1; fi
if grep -q 'Disabled' src/test/java/shop/TwiceTest.java; then
  echo "[WARNING] Tests run: 1, Failures: 0, Errors: 0, Skipped: 1"; exit 0
fi
if grep -q 'none' src/test/java/shop/TwiceTest.java; then echo "[INFO] BUILD SUCCESS"; exit 0; fi
if grep -Eq 'return (x \\+ x|2 \\* x);' $file; then
  echo "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0"; exit 0
fi
echo "[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0"; echo "[ERROR]"; exit 1
"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>own</groupId><artifactId>shop</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies><dependency>
    <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.11.4</version>
    <scope>test</scope>
  </dependency></dependencies>
  <build><plugins>
    <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
  </plugins></build>
</project>
"""
JAVA_FILES = {
    "pom.xml": POM,
    "mvn": FAKE,
    "src/main/java/shop/Twice.java": f"package shop;\n\npublic class Twice {{\n{METHOD}\n}}\n",
    "src/test/java/shop/TwiceTest.java": "package shop;\n\nimport static org.junit.jupiter.api.Assertions.assertEquals;\n"
    f"import org.junit.jupiter.api.Test;\n\nclass TwiceTest {{\n{TEST}\n}}\n",
    "target/classes/Old.class": "built before",
}
STAND_IN = Toolchain("./mvn", "/usr", COMMANDS)
COMMAND = 'mvn test -Dtest="shop.TwiceTest#doubles" -Dsurefire.failIfNoSpecifiedTests=false'
METADATA: dict[str, Any] = {
    "source": "mine",
    "repo": "shop",
    "func": METHOD,
    "func_name": "twice",
    "file_path": "src/main/java/shop/Twice.java",
    "func_start": 4,
    "func_end": 6,
    "context": "package shop;\n\npublic class Twice {\n",
    "test_file": "src/test/java/shop/TwiceTest.java",
    "test_code": TEST,
    "test_start": 7,
    "test_end": 10,
    "test_instruction": COMMAND,
    "language": "java",
}
TWICE: dict[str, Any] = {
    "hash_id": "a" * 24,
    "total_turn": 2,
    "metadata": METADATA,
    "turn_datas": [
        {
            "turn_num": 1,
            "instruction": "Write twice(int x).",
            "solution": "public static int twice(int x) {\n    return 2 * x;\n}",
            "test": "@Test\nvoid doubles() {\n    assertEquals(10, Twice.twice(5));\n}",
        },
        {
            "turn_num": 2,
            "instruction": "Refuse numbers below zero.",
            "solution": "public static int twice(int x) {\n    if (x < 0) throw new IllegalArgumentException();\n"
            "    return 2 * x;\n}",
            "test": "@Test\nvoid doubles() {\n    org.junit.jupiter.api.Assertions.assertThrows(\n"
            "        IllegalArgumentException.class, () -> Twice.twice(-1));\n}",
        },
    ],
}


def sandbox_words(folder: Path) -> list[str]:
    """The words that allow Maven in the sandbox."""
    limits = ["sandbox.processes=256", "sandbox.memory_mb=16384", "sandbox.open_files=4096"]
    return [f"sandbox.maven_repository={folder}", *limits]
