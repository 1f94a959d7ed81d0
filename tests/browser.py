"""A real browser on a real server: Chromium that notes everything a user should not meet."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from real_servers import available

from infra.local.chromium import FLAGS, chromium_binary

SECONDS = 30  # a machine may be busy; what is well takes none of them
expect.set_options(timeout=SECONDS * 1000)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of an app that runs in a thread; whoever comes before it is up waits at the open port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the command has it
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    path = available(chromium_binary)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One person's visit; `faults` are console errors, exceptions, and requests to anywhere but the server.

    A browser's console tells of every refusal too: those that hold `excused` are let pass.
    """

    def __init__(self, browser: Browser, address: str, excused: str | None = None, **settings: Any):
        self.address, self.excused, self.faults = address, excused, list[str]()
        self.context = browser.new_context(base_url=address, reduced_motion="reduce", **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("console", lambda said: said.type == "error" and self.faults.append(said.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self._foreign(request.url) and self.faults.append(request.url))

    def _foreign(self, url: str) -> bool:
        return not url.startswith((f"{self.address}/", "data:", "blob:"))

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self.context.close()
        if failed is None:
            faults = [fault for fault in self.faults if not self.excused or self.excused not in fault]
            assert not faults, faults


def serious_faults(page: Page, part: str | None = None) -> list[str]:
    """What axe-core finds serious or worse on the page, or in a part of it, with the elements it is about."""
    found = Axe().run(page, context=part, options={"resultTypes": ["violations"]}).response
    assert len(found["passes"]) > 5  # it looked at something
    return [
        f"{fault['id']}: {[node['html'] for node in fault['nodes']]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
