"""A small Java repository made up for tests, a task on it in SR-Eval's form, and a stand-in for Maven.

The stand-in reads the two files that a real Maven would compile; a real one is run where CODECHAT_TEST_MAVEN is set.
"""

from pathlib import Path
from typing import Any

from codechat.studies.sreval.suite_maven import COMMANDS, Toolchain

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
FILES = {
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
