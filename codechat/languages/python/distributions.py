"""What to install for the modules that programs import."""

from collections.abc import Iterable, Mapping

# By the imported module, where the package has another name.
PACKAGES: Mapping[str, str] = {
    "Crypto": "pycryptodome",
    "Levenshtein": "levenshtein",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow": "tensorflow-cpu",
    "yaml": "PyYAML",
}
# A module that works only with another package, or is brought by it.
BROUGHT_BY: Mapping[str, tuple[str, ...]] = {
    "keras": ("keras", "tensorflow-cpu"),
    "seaborn": ("seaborn", "matplotlib"),
}


def packages_of(module: str) -> tuple[str, ...]:
    """The packages to install for a module without dots."""
    return BROUGHT_BY.get(module) or (PACKAGES.get(module) or module.lower().replace("_", "-"),)


def requirements(modules: Iterable[str], versions: Mapping[str, str]) -> list[str]:
    """The lines for pip of what modules without dots need, sorted; a package of `versions` in its version there."""
    packages = {package for module in modules for package in packages_of(module)}
    return sorted(f"{name}=={versions[name]}" if name in versions else name for name in packages)
