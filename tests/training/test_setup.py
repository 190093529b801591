"""Options of a method: taken together, refused by name."""

from __future__ import annotations

import pytest

from modebench.errors import UsageError
from modebench.training.config import TrainConfig
from modebench.training.settings import Setting
from modebench.training.setup import _method


def settings(**values: object) -> dict[str, Setting]:
    return {name.replace("__", "."): Setting(value, "command line") for name, value in values.items()}


def test_options_that_need_each_other_may_come_in_any_order() -> None:
    one = settings(advantage__ddof=0, advantage__kind="group_std")
    other = dict(reversed(list(one.items())))
    config = TrainConfig(method="dr_grpo")
    assert _method(config, one).options() == _method(config, other).options()
    assert _method(config, one).options()["advantage"]["ddof"] == 0


def test_a_refused_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"replay\.capacity"):
        _method(TrainConfig(method="re_dr"), settings(replay__coefficient=0.2, replay__capacity=0))
    with pytest.raises(UsageError, match="ddof"):
        _method(TrainConfig(method="dr_grpo"), settings(advantage__ddof=0))


def test_options_may_make_parts_go_together() -> None:
    config = TrainConfig(method="maxrl", add=("gapo",))
    with pytest.raises(UsageError, match="maxrl: advantage does not go with gapo") as refused:
        _method(config, settings(gapo__scale="ported"))
    assert "command line" not in str(refused.value)  # no setting is to blame
    built = _method(config, settings(advantage__kind="mean_centered", gapo__scale="ported"))
    assert [part.name for part in built.parts] == ["advantage", "gapo"]
    with pytest.raises(UsageError, match=r"advantage\.kind \(command line\).*the policy's own rollouts"):
        _method(TrainConfig(method="dr_grpo", add=("rlep",)), settings(advantage__kind="maxrl"))
