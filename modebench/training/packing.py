"""Rows laid out for one forward pass, rows of one prompt behind a single copy of it.

A pack is ``prompt | response 1 | response 2 | …``. Every response attends to the prompt and to itself,
and its positions go on from the end of the prompt, so each of its tokens sees exactly what it would see
alone: the result is the same, the prompt is encoded once. The last token of a response is predicted, never
read, and is left out of the input. A pack of a single response is an ordinary sequence.

Shape suffixes: _N packs of a micro-batch, _S their padded width, _K response tokens of the micro-batch,
row after row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from modebench.training.batch import Row

PADDING = -1


@dataclass(frozen=True)
class Pack:
    """Responses behind one prompt.

    Attributes:
        prompt_ids: token ids of the prompt, at least one.
        members: which rows of the batch, as indices.
        responses: their token ids, at least one each.
    """

    prompt_ids: tuple[int, ...]
    members: tuple[int, ...]
    responses: tuple[tuple[int, ...], ...]

    @property
    def width(self) -> int:
        """Tokens that are read."""
        return len(self.prompt_ids) + sum(len(response) - 1 for response in self.responses)


@dataclass(frozen=True)
class Layout:
    """A micro-batch as tensors.

    Attributes:
        ids_NS: int64 tokens, 0 where padded (on the right).
        position_NS: int64 positions, restarted behind the prompt for each response.
        segment_NS: int64: 0 prompt, 1, 2, … responses, -1 padding.
        source_K: int64 index into the flattened [N * S] of the place whose output predicts a token.
        target_K: int64 the token.
        members: rows of the batch in the order of K.
        lengths: their tokens.
    """

    ids_NS: torch.Tensor
    position_NS: torch.Tensor
    segment_NS: torch.Tensor
    source_K: torch.Tensor
    target_K: torch.Tensor
    members: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def row_K(self) -> torch.Tensor:
        """[K] int64: place in `members` of the row that a token is of."""
        lengths = torch.tensor(self.lengths, device=self.target_K.device)
        return torch.repeat_interleave(torch.arange(len(self.lengths), device=lengths.device), lengths)

    def packed_mask(self) -> torch.Tensor:
        """[N, 1, S, S] bool: query (row) sees key (column)."""
        query_NS1, key_N1S = self.segment_NS[:, :, None], self.segment_NS[:, None, :]
        width = self.segment_NS.shape[1]
        earlier_SS = torch.ones(width, width, dtype=torch.bool, device=self.segment_NS.device).tril()
        # Padding forms a segment of its own: it sees itself, so that no softmax runs over nothing.
        return (((key_N1S == 0) | (key_N1S == query_NS1)) & earlier_SS)[:, None]

    def plain_mask(self) -> torch.Tensor:
        """[N, S] int64: 1 where a token stands; right for packs of one response."""
        return (self.segment_NS != PADDING).long()


def micro_batches(rows: Sequence[Row], tokens: int, hidden_size: int | None) -> Iterator[list[Pack]]:
    """Cut rows into micro-batches of at most `tokens` padded tokens (or one pack), shortest packs first.

    Args:
        rows: what to score.
        tokens: padded tokens of a micro-batch.
        hidden_size: width of the model, which decides how many responses share a prompt; None: a pack for
            every row.

    Raises:
        ValueError: a row without prompt or response tokens.
    """
    batch: list[Pack] = []
    for pack in sorted(_packs(rows, tokens, hidden_size), key=lambda pack: pack.width):
        if batch and (len(batch) + 1) * pack.width > tokens:
            yield batch
            batch = []
        batch.append(pack)
    if batch:
        yield batch


def arrange(packs: Sequence[Pack], device: torch.device) -> Layout:
    """Tensors of a micro-batch on `device`."""
    width = max(pack.width for pack in packs)
    ids: list[list[int]] = []
    positions: list[list[int]] = []
    segments: list[list[int]] = []
    sources: list[int] = []
    targets: list[int] = []
    for place, pack in enumerate(packs):
        start = len(pack.prompt_ids)
        row_ids, row_positions, row_segments = list(pack.prompt_ids), list(range(start)), [0] * start
        for segment, response in enumerate(pack.responses, 1):
            first = place * width + len(row_ids)
            sources += [place * width + start - 1, *range(first, first + len(response) - 1)]
            targets += response
            row_ids += response[:-1]
            row_positions += range(start, start + len(response) - 1)
            row_segments += [segment] * (len(response) - 1)
        gap = width - len(row_ids)
        ids.append(row_ids + [0] * gap)
        positions.append(row_positions + [0] * gap)
        segments.append(row_segments + [PADDING] * gap)
    return Layout(
        torch.tensor(ids, device=device),
        torch.tensor(positions, device=device),
        torch.tensor(segments, device=device),
        torch.tensor(sources, device=device),
        torch.tensor(targets, device=device),
        members=tuple(member for pack in packs for member in pack.members),
        lengths=tuple(len(response) for pack in packs for response in pack.responses),
    )


def _packs(rows: Sequence[Row], tokens: int, hidden_size: int | None) -> Iterator[Pack]:
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if not row.prompt_ids or not row.token_ids:
            raise ValueError(f"row {index} has {len(row.prompt_ids)} prompt and {len(row.token_ids)} tokens")
        by_prompt.setdefault(row.prompt_ids, []).append(index)
    for prompt_ids, indices in by_prompt.items():
        room = (
            0 if hidden_size is None else min(_room(len(prompt_ids), hidden_size), tokens - len(prompt_ids))
        )
        members: list[int] = []
        used = 0
        for index in indices:
            length = len(rows[index].token_ids)
            if members and used + length > room:
                yield _pack(rows, prompt_ids, members)
                members, used = [], 0
            members.append(index)
            used += length
        yield _pack(rows, prompt_ids, members)


def _pack(rows: Sequence[Row], prompt_ids: tuple[int, ...], members: list[int]) -> Pack:
    return Pack(prompt_ids, tuple(members), tuple(rows[member].token_ids for member in members))


def _room(prompt: int, hidden_size: int) -> int:
    """Response tokens behind one prompt for the least work.

    With H the hidden size, a token costs about 24 H² multiplications in a layer's matrices and 4 S H in its
    attention over S places, so S tokens cost in proportion to S (1 + S / 6H). With S = P + R, the cost of a
    response token, (P + R) (1 + (P + R) / 6H) / R, is least at R = sqrt(P (P + 6H)).
    """
    return math.isqrt(prompt * (prompt + 6 * hidden_size))
