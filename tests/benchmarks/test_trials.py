"""The settings that `trials.py` gives to tuning: what was tried before costs nothing again."""

from __future__ import annotations

import pytest
from trials import SETTINGS, mixtures


@pytest.mark.parametrize("method", SETTINGS)
def test_eight_trials_are_eight_settings(method: str) -> None:
    settings = SETTINGS[method]
    result = mixtures(settings, 8)
    assert len({tuple(sorted(setting.items())) for setting in result}) == 8
    assert result[:2] == settings[:2]
    for setting in result:
        assert all(
            value in [each.get(name) for each in settings] for name, value in setting.items()
        )


def test_too_few_mixtures() -> None:
    settings = [{"sigma2": 1, "lam": 2}, {"sigma2": 3, "lam": 2}]
    assert mixtures(settings, 2) == settings
    with pytest.raises(ValueError, match="2 settings of sigma2, lam, not 3"):
        mixtures(settings, 3)
