"""What to install for the modules that programs import: their packages, and the versions that SR-Eval's tests fit."""

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
# Newer versions of pandas, matplotlib and keras fail about 20 right turns of SR-Eval. All of these were installed
# together, on Python 3.11, when its references were checked (docs/sreval.md).
PINNED: Mapping[str, str] = {
    "beautifulsoup4": "4.15.0",
    "chardet": "7.7.0",
    "cryptography": "50.0.2",
    "flask": "3.1.3",
    "flask-login": "0.6.3",
    "flask-mail": "0.10.0",
    "flask-wtf": "1.3.0",
    "gensim": "4.4.0",
    "geopandas": "1.1.4",
    "keras": "2.15.0",
    "levenshtein": "0.27.5",
    "librosa": "0.11.0",
    "lxml": "4.9.4",
    "matplotlib": "3.7.5",
    "nltk": "3.8.1",
    "numpy": "1.26.4",
    "opencv-python-headless": "4.10.0.84",
    "openpyxl": "3.1.5",
    "pandas": "2.0.3",
    "pillow": "13.0.0",
    "psutil": "7.2.2",
    "pycryptodome": "4.4.0",
    "pyquery": "2.1.0",
    "pytesseract": "0.3.13",
    "python-docx": "1.2.0",
    "pytz": "2026.6",
    "regex": "2026.11.15",
    "requests": "2.34.2",
    "rsa": "4.9.1",
    "scikit-learn": "1.3.1",
    "scipy": "1.11.4",
    "seaborn": "0.13.2",
    "shapely": "2.2.0",
    "soundfile": "0.14.0",
    "statsmodels": "0.14.1",
    "tensorflow-cpu": "2.15.1",
    "werkzeug": "3.1.9",
    "wordcloud": "1.9.6",
    "wtforms": "3.3.2",
    "xlwt": "1.3.0",
}


def packages_of(module: str) -> tuple[str, ...]:
    """The packages to install for a module without dots."""
    return BROUGHT_BY.get(module) or (PACKAGES.get(module) or module.lower().replace("_", "-"),)


def requirement(package: str, *, newest: bool) -> str:
    """A line for pip: the version that is known to fit, if one is, or the `newest`."""
    return package if newest or package not in PINNED else f"{package}=={PINNED[package]}"


def requirements(modules: Iterable[str], *, newest: bool = False) -> list[str]:
    """The lines for pip of what modules without dots need, sorted."""
    return sorted({requirement(package, newest=newest) for module in modules for package in packages_of(module)})
