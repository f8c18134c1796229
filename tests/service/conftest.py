"""One small service for the tests that leave it as it is."""

import pytest

from service.small import House, house


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> House:
    """With copies on record for everybody, and one case that named bravo."""
    made = house(tmp_path_factory.mktemp("service"))
    copy = made.home.dispatch("bravo", "r1")
    list(made.home.dispatch_all(None, "r1"))
    made.home.trace(copy.path, budget="1/1000")
    return made
