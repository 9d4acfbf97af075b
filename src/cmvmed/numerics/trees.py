"""Decision trees as arrays: which leaf of each tree a row reaches, and the mean of the leaves' votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.numerics.kernels import row_blocks
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import Array, BoolArray, IntArray, Single

LARGEST = float(np.finfo(np.float32).max)
SUM_TOLERANCE = 1e-6  # of the shares of a vote
STEPS = 8  # after which those that have reached a leaf are left out
MANY_NODES = 1 << 15  # above which rows are led through the trees, since most comparisons would be in vain
ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class Trees(PickledByFields):
    """Binary trees, whose nodes are numbered together by level: first all roots, then the children of all roots, and so on.

    The children of the i-th inner node are therefore the nodes n_trees + 2i, for values up to its threshold, and
    n_trees + 2i + 1. Values and thresholds are in single precision.
    """

    n_trees: int
    feature: NDArray[np.int32]  # (nodes,), which column of the rows an inner node compares, -1 for leaves
    threshold: Single  # (inner nodes,)
    vote: NDArray[np.int32]  # (leaves,), which of the votes a leaf gives
    votes: Array  # (m, K), different shares of the classes

    @cached_property
    def inner(self) -> BoolArray:
        """Which nodes have children, (nodes,)."""
        return np.asarray(self.feature >= 0)

    @cached_property
    def column(self) -> IntArray:
        """The column that each node compares, (nodes,); any for leaves."""
        return np.where(self.inner, self.feature, 0).astype(np.intp)

    @cached_property
    def bound(self) -> Single:
        """The largest value for which a row goes to the first child, (nodes,); no value is above that of a leaf."""
        bound = np.full(self.feature.size, np.inf, dtype=np.float32)
        bound[self.inner] = self.threshold
        return bound

    @cached_property
    def child(self) -> IntArray:
        """The first child of each node, (nodes,); leaves are their own, so that a row stays there."""
        child = np.arange(self.feature.size)
        child[self.inner] = self.n_trees + 2 * np.arange(self.threshold.size)
        return child

    @cached_property
    def node_vote(self) -> IntArray:
        """Which of the votes each node gives, (nodes,); any for inner nodes."""
        vote = np.zeros(self.feature.size, dtype=np.intp)
        vote[~self.inner] = self.vote
        return vote

    @cached_property
    def levels(self) -> list[slice]:
        """The nodes of each level."""
        before, levels = self._inner_before, [slice(0, self.n_trees)]
        while before[levels[-1].stop] > before[levels[-1].start]:
            start = levels[-1].stop
            levels.append(slice(start, int(self.n_trees + 2 * before[start])))
        return levels

    @property
    def depth(self) -> int:
        """Number of steps from a root to the deepest leaf."""
        return len(self.levels) - 1

    def of_level(self, level: int) -> tuple[slice, slice, slice]:
        """The nodes of a level, and which of all inner nodes and of all leaves they are."""
        nodes, before = self.levels[level], self._inner_before
        inner = slice(int(before[nodes.start]), int(before[nodes.stop]))
        return nodes, inner, slice(nodes.start - inner.start, nodes.stop - inner.stop)

    @cached_property
    def _inner_before(self) -> IntArray:
        """How many inner nodes come before each node, and how many there are, (nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.inner)])

    def numbers_by_tree(self) -> tuple[IntArray, IntArray]:
        """The tree of each node, and its number among the nodes of its tree, (nodes,) each; that of a root is 0."""
        owner = np.arange(self.feature.size)
        for level, following in pairwise(self.levels):
            owner[following] = np.repeat(owner[level][self.inner[level]], 2)
        order, starts = np.argsort(owner, kind="stable"), np.searchsorted(np.sort(owner), np.arange(self.n_trees))
        number = np.empty_like(owner)
        number[order] = np.arange(owner.size) - starts[owner[order]]
        return owner, number

    def leaves(self, rows: Single) -> IntArray:
        """The leaf of each tree that each row reaches, (n, trees), of rows (n, d) without NaN."""
        n, values = len(rows), rows.ravel()
        found, start = np.tile(np.arange(self.n_trees), n), np.repeat(np.arange(n) * rows.shape[1], self.n_trees)
        node, active = found, np.arange(found.size)
        for step in range(1, self.depth + 1):
            above = values.take(self.column.take(node) + start) > self.bound.take(node)
            node = self.child.take(node) + above
            if step % STEPS == 0:
                found[active] = node
                left = np.flatnonzero(self.inner.take(node))
                active, node, start = active[left], node[left], start[left]
                if not left.size:
                    break
        found[active] = node
        return found.reshape(n, self.n_trees)

    def mean_votes(self, rows: Single) -> Array:
        """The mean over trees of the class shares of the leaves, (n, K)."""
        return self.mean_of(self.numbers(np.ascontiguousarray(rows.T)))

    def mean_of(self, numbers: NDArray[np.integer]) -> Array:
        """The mean of the votes with these numbers (trees, n), (n, K)."""
        n_trees, n = numbers.shape
        found = np.empty((n, self.votes.shape[1]))
        for block in row_blocks(n, n_trees * found.shape[1]):
            found[block] = self.votes.take(numbers[:, block], axis=0).sum(axis=0)
        found /= n_trees
        return found

    def numbers(self, columns: Single) -> NDArray[np.integer]:
        """The number of the vote that each tree gives, (trees, n), of rows without NaN given by column (d, n).

        Small trees make all their comparisons, for many rows 64 at a time: below, a bit says of a row which child it goes to.
        """
        n = columns.shape[1]
        if self.threshold.size > MANY_NODES:
            rows = np.ascontiguousarray(columns.T)
            parts = [self.leaves(rows[block]) for block in row_blocks(n, 4 * self.n_trees)]
            return self.node_vote.take(np.concatenate(parts).T)
        if n > 1:
            return np.concatenate([self._numbers(columns[:, block]) for block in _blocks(n)], axis=1)
        following, node = self.child + (columns.ravel().take(self.column) > self.bound), np.arange(self.n_trees)
        for _ in range(self.depth):
            node = following.take(node)
        return self.node_vote.take(node)[:, None]

    def _numbers(self, columns: Single) -> NDArray[np.integer]:
        """From the votes of the leaves upwards: an inner node gives the vote of the child to which the row goes."""
        n, feature = columns.shape[1], self.column[self.inner]
        above = np.zeros((feature.size, -(-n // 64) * 64), dtype=bool)
        for part in row_blocks(feature.size, n):
            np.greater(columns.take(feature[part], axis=0), self.threshold[part, None], out=above[part, :n])
        goes_right = np.packbits(above, axis=1).view(np.uint64)
        bits = np.repeat(self._leaf_bits, goes_right.shape[1], axis=2)
        for inner, nodes in self._levels_upwards:
            children = bits[:, self.n_trees + 2 * inner.start : self.n_trees + 2 * inner.stop]
            left, right = children[:, ::2], children[:, 1::2]
            bits[:, nodes] = left ^ ((left ^ right) & goes_right[inner])
        places = np.unpackbits(bits[:, : self.n_trees].view(np.uint8), axis=2)[:, :, :n]
        return np.asarray(sum(own.astype(np.intp) << place for place, own in enumerate(places)))

    @cached_property
    def _leaf_bits(self) -> NDArray[np.uint64]:
        """By binary place of the numbers of votes, 64 times that of each leaf's, (places, nodes, 1); zero for inner nodes."""
        places = np.arange(max(1, (len(self.votes) - 1).bit_length()))
        is_set = (self.node_vote >> places[:, None]) & 1 == 1
        return np.where(is_set, ~np.uint64(0), np.uint64(0))[:, :, None]

    @cached_property
    def _levels_upwards(self) -> list[tuple[slice, IntArray]]:
        """The inner nodes of each level, from the last: which of all inner nodes they are, and their numbers."""
        nodes, parts = np.flatnonzero(self.inner), [self.of_level(level)[1] for level in reversed(range(self.depth))]
        return [(part, nodes[part]) for part in parts]

    def is_sound(self, n_columns: int, n_classes: int) -> bool:
        """Whether the arrays make trees over so many columns and classes, in which every row reaches a leaf."""
        n_nodes, n_inner = self.feature.size, self.threshold.size
        return (
            type(self.n_trees) is int
            and self.n_trees > 0
            and n_nodes == self.n_trees + 2 * n_inner
            and _are_numbers(self.feature, (n_nodes,), np.int32, -1, n_columns - 1)
            and _are_numbers(self.threshold, (n_inner,), np.float32, -LARGEST, LARGEST)
            and int(self.inner.sum()) == n_inner
            and bool((self.child[self.inner] > np.flatnonzero(self.inner)).all())
            and _are_numbers(self.vote, (n_nodes - n_inner,), np.int32, 0, len(self.votes) - 1)
            and _are_numbers(self.votes, (len(self.votes), n_classes), np.float64, 0.0, 1.0)
            and bool((np.abs(self.votes.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all())
        )


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, n, ROWS_AT_ONCE))


def joined(parts: Sequence[Trees], columns: Sequence[IntArray]) -> Trees:
    """All trees of several sets as one, with the columns that each set compares among those of all."""
    votes, number = _distinct(np.concatenate([own.votes for own in parts]))
    starts = np.cumsum([0, *(len(own.votes) for own in parts[:-1])])
    feature, threshold, vote = [], [], []
    for level in range(max(own.depth for own in parts) + 1):
        for own, used, start in zip(parts, columns, starts, strict=True):
            if level <= own.depth:
                nodes, inner, leaves = own.of_level(level)
                feature.append(np.where(own.inner[nodes], used[own.column[nodes]], -1))
                threshold.append(own.threshold[inner])
                vote.append(number[start + own.vote[leaves]])
    n_trees = sum(own.n_trees for own in parts)
    return Trees(
        n_trees, np.concatenate(feature).astype(np.int32), np.concatenate(threshold), np.concatenate(vote), votes
    )


def _are_numbers(array: NDArray[Any], shape: tuple[int, ...], dtype: type, least: float, most: float) -> bool:
    """Whether an array has this form, and numbers within these bounds, which NaN is not."""
    return array.shape == shape and array.dtype == dtype and bool(((array >= least) & (array <= most)).all())


def trees_of_forest(trees: Sequence[Any], codes: Sequence[IntArray], n_classes: int) -> tuple[Trees, IntArray]:
    """The trees of a fitted forest of scikit-learn, and the columns that they use, ascending.

    Nodes refer to these columns by their place among them.

    Parameters
    ----------
    trees : the attributes ``tree_`` of its classifiers
    codes : per tree, the classes of its votes among all ``n_classes``
    """
    starts = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    shifted = [
        (tree.children_left + start, tree.children_right + start) for tree, start in zip(trees, starts, strict=True)
    ]
    left, right = (np.concatenate(own) for own in zip(*shifted, strict=True))
    is_inner = np.concatenate([tree.children_left >= 0 for tree in trees])
    level, levels = starts, []
    while level.size:
        levels.append(level)
        parents = level[is_inner[level]]
        level = np.column_stack([left[parents], right[parents]]).ravel()
    order = np.concatenate(levels)
    inner, leaf = order[is_inner[order]], order[~is_inner[order]]
    columns, place = np.unique(np.concatenate([tree.feature for tree in trees])[inner], return_inverse=True)
    feature = np.full(order.size, -1, dtype=np.int32)
    feature[is_inner[order]] = place
    shares = np.zeros((is_inner.size, n_classes))
    for tree, own, start in zip(trees, codes, starts, strict=True):
        shares[start : start + tree.node_count, own] = tree.value.reshape(tree.node_count, -1)
    votes, vote = _distinct(shares[leaf])
    threshold = rounded_down(np.concatenate([tree.threshold for tree in trees])[inner])
    return Trees(len(trees), feature, threshold, vote, votes), columns.astype(np.intp)


def _distinct(rows: Array) -> tuple[Array, NDArray[np.int32]]:
    """The distinct rows (m, K) of an array (n, K), in the order in which they occur first, and the number of each row's."""
    contents: list[Any] = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel().tolist()  # bytes
    first: dict[bytes, int] = {}
    number = np.array([first.setdefault(content, len(first)) for content in contents], dtype=np.int32)
    return rows[np.unique(number, return_index=True)[1]], number


def rounded_down(values: Array) -> Single:
    """The largest numbers of single precision that are not above: x <= value and x <= its rounded form are the same for such x."""
    nearest = values.astype(np.float32)
    return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
