"""What a run used: tokens as its engine counted them, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

_MILLION = 1_000_000


def usage_of(samples: pd.DataFrame, engine_options: Mapping[str, Any]) -> dict[str, Any]:
    """The ``usage`` of a run, or nothing where its engine counts no tokens.

    Args:
        samples: the run's samples, with the columns status, input_tokens, output_tokens.
        engine_options: of the manifest, with ``price_in`` and ``price_out`` per million tokens, or None.

    Returns:
        ``{"usage": {input_tokens, output_tokens, uncounted_samples, cost}}``: sums over the samples that
        have counts, how many responses have none, and the cost in the unit of the prices, None where a
        price or a count is unknown. Failed samples and requests that were tried again are not in it: no
        server says what they used.
    """
    counts = samples.reindex(columns=["input_tokens", "output_tokens"]).astype(float)
    if not counts.notna().any(axis=None):
        return {}
    uncounted = int((counts.isna().any(axis=1) & (samples["status"] != "error")).sum())
    tokens_in, tokens_out = (int(counts[name].sum()) for name in counts)
    price_in, price_out = engine_options.get("price_in"), engine_options.get("price_out")
    cost = None
    if price_in is not None and price_out is not None and not uncounted:
        cost = (tokens_in * price_in + tokens_out * price_out) / _MILLION
    names = ("input_tokens", "output_tokens", "uncounted_samples", "cost")
    return {"usage": dict(zip(names, (tokens_in, tokens_out, uncounted, cost), strict=True))}


def usage_text(documents: Iterable[Mapping[str, Any]]) -> str | None:
    """One line on the usage of several runs together, from their summary documents.

    >>> used = {"input_tokens": 1200, "output_tokens": 30, "uncounted_samples": 0, "cost": 0.5}
    >>> usage_text([{"usage": used}, {"usage": used}])
    'tokens: 2400 in, 60 out; cost 1'
    """
    used = [document["usage"] for document in documents if "usage" in document]
    if not used:
        return None
    text = "tokens: {} in, {} out".format(
        *(sum(entry[name] for entry in used) for name in ("input_tokens", "output_tokens"))
    )
    if uncounted := sum(entry["uncounted_samples"] for entry in used):
        text += f", unknown for {uncounted} samples"
    costs = [entry["cost"] for entry in used]
    return text if None in costs else f"{text}; cost {sum(costs):.6g}"
