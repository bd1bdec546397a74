"""A website that is asked: what it keeps open, and until when."""

import pytest

from codechat.base.errors import InfrastructureError
from codechat.models.calls.limits import Limits
from codechat.models.calls.retry import Policy
from codechat.models.calls.site import Page, Site
from codechat.testing import Fault, OpenAIServer


class Server(OpenAIServer):
    def page(self, path: str) -> Fault | None:
        return Fault(200, f"asked for {path}")


async def test_a_site_is_closed_before_and_after_it_was_asked_and_opened_again() -> None:
    with Server(lambda _: "") as server:
        site = Site(server.base_url, Policy("site", 10.0, 10.0, 0), {})
        await site.aclose()
        for _ in range(2):
            said = await site.get("/a", lambda page: page, Limits(1))
            assert isinstance(said, Page) and said.status == 200 and said.content.endswith(b"/a")
            await site.aclose()


async def test_nothing_that_answers_is_told() -> None:
    site = Site("http://127.0.0.1:9", Policy("site", 10.0, 10.0, 0), {})
    with pytest.raises(InfrastructureError, match=r"nothing answers at http://127\.0\.0\.1:9"):
        await site.get("/a", lambda page: page, Limits(1))
    await site.aclose()
