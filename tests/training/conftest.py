"""What the tests of whole training runs share."""

from __future__ import annotations

import pytest

from tests.training.child import Place, install_letters, save_policy


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A random model and the domain of letters."""
    folder = tmp_path_factory.mktemp("place")
    return Place(save_policy(folder / "model"), install_letters(folder / "site"))
