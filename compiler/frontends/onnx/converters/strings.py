"""Text: joining, splitting, cleaning, matching, counting."""

from __future__ import annotations

from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ops import ngrams, strings


@converts("StringConcat")
def string_concat(site: Site) -> Results:
    """Elementwise."""
    return site.b(strings.StringConcat, *site.given)


@converts("StringSplit")
def string_split(site: Site) -> Results:
    """Substrings and their counts."""
    limit = site.attribute("maxsplit")
    extra = {} if limit is None or limit < 0 else {"limit": limit}
    return site.b.op(strings.StringSplit, [site.input(0)], (), delimiter=site.attribute("delimiter") or "", **extra)


@converts("StringNormalizer")
def string_normalizer(site: Site) -> Results:
    """Stop words left out, case changed. Case is mapped as Unicode says, whatever the locale."""
    action = str(site.attribute("case_change_action"))
    if action not in {"NONE", "LOWER", "UPPER"}:
        site.bad_attribute(f"attribute 'case_change_action' is '{action}'; expected NONE, LOWER or UPPER")
    return site.b(
        strings.StringNormalize,
        site.input(0),
        case=action.lower(),
        case_sensitive=bool(site.attribute("is_case_sensitive")),
        stopwords=tuple(site.attribute("stopwords") or ()),
    )


@converts("RegexFullMatch")
def regex_full_match(site: Site) -> Results:
    """A match of the whole string."""
    pattern = site.attribute("pattern")
    if pattern is None:
        site.invalid("it lacks attribute 'pattern'")
    return site.b(strings.RegexFullMatch, site.input(0), pattern=pattern)


@converts("TfIdfVectorizer")
def tfidf_vectorizer(site: Site) -> Results:
    """Counts of n-grams."""
    mode = str(site.attribute("mode"))
    if mode not in {"TF", "IDF", "TFIDF"}:
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected TF, IDF or TFIDF")
    given = {"numbers": "pool_int64s", "words": "pool_strings", "weights": "weights"}
    optional = {name: site.attribute(theirs) for name, theirs in given.items() if site.attribute(theirs)}
    return site.b(
        ngrams.NgramCounts,
        site.input(0),
        mode=mode.lower(),
        shortest=site.attribute("min_gram_length"),
        longest=site.attribute("max_gram_length"),
        skips=site.attribute("max_skip_count"),
        starts=site.attribute("ngram_counts"),
        columns=site.attribute("ngram_indexes"),
        **optional,
    )
