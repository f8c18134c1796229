"""One thread inside the block, as many as before outside of it."""

import pytest
import torch

from zktrace.learning.threads import single_threaded


def test_threads_are_given_back_whatever_happens() -> None:
    torch.set_num_threads(2)
    with single_threaded():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), single_threaded():
        raise KeyError
    assert torch.get_num_threads() == 2
