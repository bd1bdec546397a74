"""Programs that take the place of a function in a repository, fail its tests, and try to pass them all the same.

Each is the body of a module's first lines (`TOP`, run when the module is imported) or of the function itself (`CALLED`,
run in a test). None of them counts commas. The tests are in `tests/` and `more/`, see `FILES`.
"""

FILES = {
    "words/__init__.py": "",
    "words/count.py": "def count(text):\n    return text.count(',') + 1\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef text():\n    return 'a,b'\n",
    "tests/test_count.py": """import unittest

import pytest

from words.count import count


class CountTest(unittest.TestCase):
    def test_count(self):
        self.assertEqual(count("a,b"), 2)

    def test_parts(self):
        for text in ("a", "a,b"):
            with self.subTest(text):
                self.assertEqual(count(text), len(text) // 2 + 1)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_many(number):
    assert count("," * number) == number + 1


def test_fixture(text):
    assert count(text) == 2


def test_raises():
    with pytest.raises(AttributeError):
        count(None)
""",
    "more/test_more.py": "from words.count import count\n\n\ndef test_more():\n    assert count('a,b,c') == 3\n",
    "pytest.ini": "[pytest]\naddopts = --not-an-option\n",
}
NODES = (
    "tests/test_count.py::CountTest::test_count",
    "tests/test_count.py::CountTest::test_parts",
    "tests/test_count.py::test_many",
    "tests/test_count.py::test_fixture",
    "tests/test_count.py::test_raises",
    "more/test_more.py::test_more",
)
RIGHT = "def count(text):\n    return len(text.split(','))\n"

CALLED = {
    "skips": "import pytest\npytest.skip('x')",
    "skips in unittest's way": "import unittest\nraise unittest.SkipTest('x')",
    "skips the hard ones": "if len(text) != 1:\n    import pytest\n    pytest.skip('x')\nreturn 2",
    "skips by what pytest raises": "import pytest\nraise pytest.skip.Exception('x')",
    "skips by a missing module": "import pytest\npytest.importorskip('no_such_module')",
    "skips in a test case": "import sys\nsys._getframe(1).f_locals['self'].skipTest('x')",
    "expects to fail": "import pytest\npytest.xfail('x')",
    "expects to fail, the unittest way": "import unittest.case\nraise unittest.case._ShouldStop",
    "marks its test": "import gc, pytest\nfor item in [each for each in gc.get_objects() if isinstance(each, pytest.Function)]:\n"
    "    item.add_marker(pytest.mark.xfail(strict=False))\nassert False",
    "marks the hard ones": "import gc, pytest\nfor item in [each for each in gc.get_objects() if isinstance(each, pytest.Function)]:\n"
    "    if item.name != 'test_many[1]':\n        item.add_marker(pytest.mark.xfail(strict=False))\n"
    "return len(text.split(',')) if text in ('a,b', 'a', 'a,b,c', ',', None) else 0",
    "ends the session": "import pytest\npytest.exit('x', 0)",
    "ends the session, by keyword": "import pytest\npytest.exit(reason='x', returncode=0)",
    "ends the session by what it raises": "import pytest\nraise pytest.exit.Exception('x', 0)",
    "ends the process": "import os\nos._exit(0)",
    "ends in order": "raise SystemExit(0)",
    "ends quietly": "import sys\nsys.exit()",
    "is interrupted": "raise KeyboardInterrupt",
    "sends itself a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)",
    "stops the generator": "raise StopIteration",
    "closes the generator": "raise GeneratorExit",
    "asks to stop": "import gc, pytest\nfor each in gc.get_objects():\n    if isinstance(each, pytest.Session):\n"
    "        each.shouldstop = 'x'\npytest.skip('x')",
    "forks": "import os\nif os.fork():\n    os.wait()\nos._exit(0)",
    "becomes another program": "import os\nos.execv('/bin/true', ['true'])",
    "prints what pytest prints": "import os\nos.write(2, b'6 passed in 0.01s')\nos._exit(0)",
    "writes a report": "open('report.xml', 'w').write('<testsuite tests=\"6\" failures=\"0\"/>')\nreturn 0",
    "equals all": "class All(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
    "if text is not None:\n    import pytest\n    pytest.skip('x')\nreturn All()",
    "reads the token": "import os\nfor place in ('../token', '/proc/self/environ'):\n    try:\n"
    "        os.write(2, open(place, 'rb').read())\n    except OSError:\n        pass\nos._exit(0)",
    "reads the arguments": "import os, sys\nos.write(2, ' '.join(sys.argv).encode() + b'CODECHAT_TOKEN')\nos._exit(0)",
}
TOP = {
    "skips the file": "import pytest\npytest.skip('x', allow_module_level=True)",
    "skips the file, the unittest way": "import unittest\nraise unittest.SkipTest('x')",
    "ends while it is collected": "import pytest\npytest.exit('x', 0)",
    "cannot be collected": "raise ImportError('x')",
    "exits while it is collected": "raise SystemExit(0)",
    "ends at once": "import os\nos._exit(0)",
    "marks the file": "import pytest, sys\nframe = sys._getframe()\nwhile frame.f_globals.get('__name__') not in ('test_count', 'tests.test_count'):\n"
    "    frame = frame.f_back\nframe.f_globals['pytestmark'] = pytest.mark.skip",
    "expects the file to fail": "import pytest, sys\nframe = sys._getframe()\nwhile frame.f_globals.get('__name__') not in ('test_count', 'tests.test_count'):\n"
    "    frame = frame.f_back\nframe.f_globals['pytestmark'] = pytest.mark.xfail",
    "renames all": "import pytest\npytest.Function.nodeid = 'x'",
    "runs nothing": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None",
    "runs no function": "import _pytest.python\n_pytest.python.pytest_pyfunc_call = lambda pyfuncitem: True",
    "runs no case": "import unittest\nunittest.TestCase.run = lambda self, result=None: None\n"
    "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None",
    "swallows": "import _pytest.runner\nold = _pytest.runner.CallInfo.from_call\n"
    "_pytest.runner.CallInfo.from_call = classmethod(lambda cls, func, when, reraise=None: old(lambda: None, when=when))",
    "reports otherwise": "import _pytest.reports\nold = _pytest.reports.TestReport.from_item_and_call\n"
    "def made(item, call):\n    call.excinfo = None\n    return old(item, call)\n"
    "_pytest.reports.TestReport.from_item_and_call = made",
    "shows no exception": "import _pytest.runner\n"
    "_pytest.runner.CallInfo.excinfo = property(lambda self: None, lambda self, value: None)",
    "shows no exception, by a class of its own": "import _pytest.runner\nclass Blind:\n"
    "    def __get__(self, one, kind=None):\n        return None\n    def __set__(self, one, value):\n        pass\n"
    "_pytest.runner.CallInfo.excinfo = Blind()",
    "always passes": "import _pytest.reports\n_pytest.reports.TestReport.outcome = property(lambda self: 'passed', lambda self, value: None)",
    "a test without a body": "import _pytest.unittest\n_pytest.unittest.TestCaseFunction.setup = lambda self: setattr(self, 'runtest', lambda: None)",
    "an error that nothing raises": "import builtins\nclass Never(Exception):\n    def __new__(cls, *given):\n        raise AttributeError\n"
    "builtins.AssertionError = Never",
    "a compiler that sees other tests": "import builtins\nold = builtins.compile\n"
    "builtins.compile = lambda text, *given, **more: old('def test_more(): pass', *given, **more)",
    "a reader that sees other tests": "import pathlib\nold = pathlib.Path.read_bytes\n"
    "pathlib.Path.read_bytes = lambda path: b'def test_more(): pass\\n' if path.name == 'test_more.py' else old(path)",
    "finds other tests": "import importlib.abc, importlib.util, sys\nclass Loader(importlib.abc.Loader):\n"
    "    def create_module(self, spec):\n        return None\n    def exec_module(self, module):\n        module.test_more = lambda: None\n"
    "class Finder:\n    def find_spec(self, name, path, target=None):\n        if name.endswith('test_more'):\n"
    "            return importlib.util.spec_from_loader(name, Loader())\nsys.meta_path.insert(0, Finder())",
    "loads other tests before": "import sys, types\nmade = types.ModuleType('test_more')\nmade.test_more = lambda: None\n"
    "made.__file__ = 'more/test_more.py'\nsys.modules['test_more'] = sys.modules['more.test_more'] = made",
    "asserts nothing": "import unittest\nunittest.TestCase.assertEqual = lambda *given: None",
    "raises otherwise": "import pytest, contextlib\npytest.raises = lambda *given, **more: contextlib.nullcontext()",
    "replaces a builtin": "import builtins\nbuiltins.len = lambda each: 0\nbuiltins.AssertionError = type('E', (Exception,), {})",
    "is no failure": "import builtins, pytest\nbuiltins.AssertionError = pytest.skip.Exception",
    "brings a plugin": "import gc, pytest\nclass Plugin:\n    @pytest.hookimpl(hookwrapper=True)\n"
    "    def pytest_runtest_makereport(self, item, call):\n        call.excinfo = None\n        result = yield\n"
    "        result.get_result().outcome = 'passed'\n"
    "for each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n        each.pluginmanager.register(Plugin())",
    "brings a module as a plugin": "import gc, pytest, sys, types\nmade = types.ModuleType('made')\n"
    "made.pytest_runtest_call = lambda item: None\nmade.__file__ = 'conftest.py'\n"
    "for each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n        each.pluginmanager.register(made)",
    "takes tests away": "import gc, pytest\nclass Plugin:\n    def pytest_collection_modifyitems(self, items):\n        items[:] = []\n"
    "for each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n        each.pluginmanager.register(Plugin())",
    "only collects": "import gc, pytest\nfor each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n"
    "        each.option.collectonly = True",
    "deselects": "import gc, pytest\nfor each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n"
    "        each.option.keyword = 'raises'",
    "lets tests fail": "import gc, pytest\nfor each in gc.get_objects():\n    if isinstance(each, pytest.Config):\n"
    "        each.option.runxfail = True\n        each.option.maxfail = 0",
    "writes a conftest": "open('more/conftest.py', 'w').write('import pytest\\n\\n\\n@pytest.hookimpl(tryfirst=True)\\n"
    "def pytest_pyfunc_call(pyfuncitem):\\n    return True\\n')\nopen('conftest.py', 'w').write(open('more/conftest.py').read())",
    "changes the conftest": "open('tests/conftest.py', 'w').write('def pytest_pyfunc_call(pyfuncitem):\\n    return True\\n')",
    "writes settings": "for name in ('pytest.ini', 'setup.cfg', 'tox.ini', 'pyproject.toml'):\n"
    "    open(name, 'w').write('[pytest]\\n[tool:pytest]\\npython_functions = nothing\\naddopts = --co\\n')",
    "sets pytest's variable": "import os\nos.environ['PYTEST_ADDOPTS'] = '--co -q'\nos.environ['PYTEST_PLUGINS'] = 'words.count'",
    "changes a later file": "open('more/test_more.py', 'w').write('def test_more():\\n    pass\\n')",
    "replaces pytest": "import sys, types\nsys.modules['pytest'] = types.ModuleType('pytest')",
    "ends behind all": "import atexit, os\natexit.register(os._exit, 0)",
    "exits with another status": "import sys, os\nsys.exit = lambda status=None: os._exit(0)\nos._exit = lambda status: None",
    "ends when told": "import gc, pytest\nfor each in gc.get_objects():\n    if isinstance(each, pytest.Session):\n"
    "        each.testsfailed = -100\n        each.exitstatus = 0",
}
