"""Text."""

from __future__ import annotations

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import exports
from compiler.ir import Op
from compiler.ops import ngrams, strings


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
