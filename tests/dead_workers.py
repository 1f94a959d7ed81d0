"""What happens to a run when one of its processes dies: it ends at once, with the name of the test.

Left to itself, xdist replaces the process and runs the same test again, several times over, and when the others have
been told to leave meanwhile, it waits for ever for one to take the rest.
"""

import pytest

DIED = "???"  # how xdist calls the phase of a test whose process died


@pytest.hookimpl(trylast=True)  # once the failure is on the list
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == DIED:
        # The others are not waited for: a test of theirs may take minutes.
        pytest.exit(f"{report.nodeid}: its process died, so the run ends here", returncode=1)
