"""A real headless Chromium for tests of pages, told to contact nothing by itself."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 20.0  # for what takes well below a second on an idle machine
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync", "--window-size=1300,900",
)  # fmt: skip


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A Selenium driver; skips the test where the browser or its driver is not installed."""
    program, driver_program = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if program is None or driver_program is None:
        pytest.skip("needs chromium and chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_program))
    try:
        driver.set_page_load_timeout(60)
        yield driver
    finally:
        driver.quit()


def until(condition: Callable[[], Any], what: str) -> Any:
    """The condition's first true value."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"waited in vain: {what}")


def requested(driver: Any) -> list[str]:
    """The addresses that pages asked for since the last call; a slow browser's own start page is none of theirs."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("chrome:", "chrome-untrusted:"))]
