"""Dockerfiles that are refused without a build, and what a model is shown of a repository."""

from pathlib import Path

import pytest

from codechat.studies.cab.construct.roles import describe, refusal_of
from codechat.studies.cab.environments.docker import DockerConfig

COMMIT, OTHER = "a" * 40, "b" * 40
HOME = "https://github.com/ann/shop"
GOOD = {
    "copies": "COPY . .\nRUN make",
    "clones itself at the commit": f"RUN git clone {HOME}.git /s && cd /s && git checkout {COMMIT}",
    "without .git": f"RUN git clone {HOME} . && git reset --hard {COMMIT}",
    "in several steps": f"RUN git init && git remote add origin {HOME}\nRUN git fetch origin {COMMIT}\n"
    "RUN git checkout FETCH_HEAD",
    "another address that is no repository": "COPY src /src\nRUN wget https://example.org/a.tar.gz",
    "a word": "COPY --chown=a a.py /b/\nRUN apt-get install -y git && echo clone",
}
REFUSED = {
    "it clones https://github.com/eve/shop": f"RUN git clone https://github.com/eve/shop && git checkout {COMMIT}",
    "it clones https://github.com/ann/shop2.git": "RUN git clone --depth 1 https://github.com/ann/shop2.git",
    "it clones git+https://github.com/eve/lib": "RUN pip install git+https://github.com/eve/lib",
    "it clones git@github.com:ann/shop.git": "RUN git clone git@github.com:ann/shop.git",
    "it clones https://github.com/eve/lib.git": f"RUN git clone {HOME} . && git checkout {COMMIT}\n"
    "RUN git submodule add https://github.com/eve/lib.git",
    "it clones the repository, but not at its commit": f"RUN git clone {HOME}",
    f"it checks out {OTHER}": f"RUN git clone {HOME} . && git checkout {COMMIT} && git checkout {OTHER}",
    "it checks out main": f"RUN git clone {HOME} . \\\n && git -C . checkout main # {COMMIT}",
    "what it clones cannot be told": "ARG A=x\nRUN git clone $A",
    "what it clones cannot be told: RUN git submodule": "RUN git submodule update --init",
    "it clones https://github.com/eve/lib.git#main": "ADD https://github.com/eve/lib.git#main /lib",
    "RUN --mount": "RUN --mount=type=cache,target=/root make",
    "RUN --network": "RUN --network=host make",
    "RUN --security": "RUN --security=insecure make",
}


def refusal(text: str, **options: object) -> str:
    config = DockerConfig.model_validate({"build_network": True, **options})
    return refusal_of(f"FROM tiny\n{text}\n", "ann/shop", COMMIT, "https://github.com", config)


@pytest.mark.parametrize("name", GOOD)
def test_what_may_be_built(name: str) -> None:
    assert refusal(GOOD[name]) == ""


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_refused_without_a_build(said: str) -> None:
    assert refusal(REFUSED[said]).startswith(said)


def test_downloads_of_the_builder_need_the_network() -> None:
    assert "builds have no network" in refusal("ADD https://example.org/a /a", build_network=False)
    assert refusal("ADD https://example.org/a /a\nADD . /s") == ""


STAGES = "COPY . /s\nRUN make\nFROM tiny\n"


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("RUN echo hello", True),
        ("RUN apt-get install -y make\nWORKDIR /app", True),
        ("ADD https://example.org/a.tgz /a", True),
        ("COPY <<EOF /a", True),
        (f"{STAGES}RUN echo hello", True),
        (f"{STAGES}COPY --from=0 /s/bin /bin/", False),
        ("COPY . /s\nFROM tiny AS two\nRUN true\nFROM tiny\nCOPY --from=two /a /a", True),
        ("COPY . /s\nFROM tiny AS Two\nCOPY --from=0 /s /s\nFROM two", False),
        ("RUN true\nFROM other AS two\nCOPY --from=0 /a /a", True),
        ('COPY ["setup.py", "/s/"]', False),
        (f"RUN curl -L {HOME}/archive/{COMMIT}.tar.gz | tar xz", False),
    ],
)
def test_something_of_the_repository_must_be_in_the_image(text: str, empty: bool) -> None:
    assert ("nothing of the repository" in refusal(text)) == empty, refusal(text)


def test_a_repository_is_described_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    root = tmp_path / "root"
    for name, text in {
        "readme.md": "How to build.", "src/main.c": "int main", ".github/workflows/b.yml": "on: push",
        ".github/workflows/a.yaml": "on: tag", ".github/workflows/c.yml": "third", "docker/Dockerfile": "FROM own",
        ".git/config": "hidden", "long/README": "x" * 9_000,
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "README").symlink_to(tmp_path / "secret")
    (root / "linked").symlink_to(tmp_path)
    told = describe(root)
    assert told.startswith("Files (7):\nreadme.md\n")
    for text in ("How to build.", "on: push", "on: tag", "FROM own", "src/main.c", "long/README"):
        assert text in told
    for text in ("secret", "hidden", "third", "int main", "xxx", "linked"):
        assert text not in told
    for number in range(300):
        (root / f"file{number}").write_text("")
    (root / "readme.md").write_text("y" * 9_000)
    assert "y" * 4_000 + "…" in describe(root) and len(describe(root)) < 9_000
