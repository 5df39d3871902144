"""Text."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit, exports
from compiler.ir import Op
from compiler.ops import ngrams, strings


@exports(strings.StringConcat)
def string_concat(op: Op, e: Emit) -> None:
    """Joined strings."""
    e.op(op, "StringConcat")


@exports(strings.StringSplit)
def string_split(op: Op, e: Emit) -> None:
    """Substrings."""
    call = op.call()
    e.op(op, "StringSplit", delimiter=call.text("delimiter"), maxsplit=call.get("limit"))


@exports(strings.StringNormalize)
def string_normalize(op: Op, e: Emit) -> None:
    """Strings without stop words."""
    call = op.call()
    e.op(
        op,
        "StringNormalizer",
        case_change_action=call.text("case").upper(),
        is_case_sensitive=int(call.flag("case_sensitive")),
        stopwords=call.attributes["stopwords"] or None,
    )


@exports(strings.RegexFullMatch)
def regex_full_match(op: Op, e: Emit) -> None:
    """Matches."""
    e.op(op, "RegexFullMatch", pattern=op.call().text("pattern"))


@exports(ngrams.NgramCounts)
def ngram_counts(op: Op, e: Emit) -> None:
    """Counts of n-grams."""
    call = op.call()
    e.op(
        op,
        "TfIdfVectorizer",
        mode=call.text("mode").upper(),
        min_gram_length=call.integer("shortest"),
        max_gram_length=call.integer("longest"),
        max_skip_count=call.integer("skips"),
        ngram_counts=call.integers("starts"),
        ngram_indexes=call.integers("columns"),
        pool_int64s=call.get("numbers"),
        pool_strings=call.get("words"),
        weights=call.get("weights"),
    )
