"""ai.onnx.ml's encoders, scalers and selectors: arithmetic where it is arithmetic, tables and maps on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.frontends.onnx.converters.common import cast, concat, reshape, unsqueeze
from compiler.frontends.onnx.converters.ml_scores import ML, labels_of
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import F32, F64, I64, STRING, Constant, ElementType, Value, element_of
from compiler.ops.compose import Emit
from compiler.ops.ml_lookup import TableLookup
from compiler.ops.ml_maps import MapCast, MapVectorize, ZipMap
from compiler.ops.padding import Pad
from compiler.ops.strings import texts

if TYPE_CHECKING:
    from compiler.ir import Array


@converts("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(site: Site) -> Results:
    """Elements along the last dim; a vector counts as one row."""
    x, indices = site.input(0), reshape(site, site.input(1), (-1,))
    if site.rank(x) == 0:
        site.bad_shape("its input is a scalar; expected at least one dim")
    taken = Emit(site.b)("gather", x, indices, axis=-1)
    return unsqueeze(site, taken, (0,)) if site.rank(x) == 1 else taken


@converts("Binarizer", domain=ML)
def binarizer(site: Site) -> Results:
    """1 above the threshold, else 0. Integers are compared as floats: the threshold may have a fraction."""
    x, emit = site.input(0), Emit(site.b)
    element = x.tensor.element
    wide = x if element.is_float else cast(site, x, F64)
    return emit.cast(emit("gt", wide, site.attribute("threshold")), element)


@converts("Scaler", domain=ML)
def scaler(site: Site) -> Results:
    """(x - offset) * scale, one factor for all or one a feature of the last dim."""
    x, emit = site.input(0), Emit(site.b)
    element = x.tensor.element if x.tensor.element is F64 else F32
    x = cast(site, x, element)
    offset, scale = (_per_feature(site, name, x, neutral) for name, neutral in (("offset", 0.0), ("scale", 1.0)))
    return emit.cast(emit("mul", emit("sub", x, offset), scale), F32)


def _per_feature(site: Site, name: str, x: Value, neutral: float) -> Value:
    values = site.attribute(name) or (neutral,)
    size = x.tensor.known_dims[-1] if x.tensor.dims else 1
    if len(values) != 1 and isinstance(size, int) and size != len(values):
        site.bad_attribute(f"attribute '{name}' has {len(values)} entries for {size} features; expected 1 or {size}")
    array = np.array(values, x.tensor.element.dtype)
    return site.b.constant(array.reshape(()) if len(values) == 1 else array)


@converts("Normalizer", domain=ML)
def normalizer(site: Site) -> Results:
    """Each row over its greatest element, its sum of sizes, or its length. Rows of 0 stay as they are.

    The greatest element is taken with its sign, as the formula of the specification and onnxruntime have it.
    """
    norm, emit = str(site.attribute("norm")), Emit(site.b)
    x = cast(site, site.input(0), F32)
    rank = site.rank(x)
    if rank not in {1, 2} or norm not in {"MAX", "L1", "L2"}:
        site.bad_attribute(f"norm '{norm}' of {x.type}; expected MAX, L1 or L2 of [N, C] or [C]")
    axes = (rank - 1,)
    if norm == "MAX":
        divisor = emit("reduce_max", x, axes=axes, keep_dims=True)
    elif norm == "L1":
        divisor = emit("reduce_sum", emit("abs", x), axes=axes, keep_dims=True)
    else:
        divisor = emit("sqrt", emit("reduce_sum", emit("mul", x, x), axes=axes, keep_dims=True))
    one = emit.scalar(1.0, F32)
    return emit("div", x, emit("select", emit("eq", divisor, 0.0), one, divisor))


@converts("Imputer", domain=ML)
def imputer(site: Site) -> Results:
    """Elements equal to one value, NaN too, replaced: by one value, or by one a feature of the last dim."""
    x, emit = site.input(0), Emit(site.b)
    element = x.tensor.element
    kind = "float" if element.is_float else "int64"
    values = site.attribute(f"imputed_value_{kind}s")
    if not values:
        site.bad_attribute(f"it lacks attribute 'imputed_value_{kind}s', which {element} needs")
    array = np.array(values, element.dtype)
    replacement = site.b.constant(array.reshape(()) if array.size == 1 else array)
    wanted = site.attribute(f"replaced_value_{kind}")
    found = emit("isnan", x) if wanted != wanted else emit("eq", x, emit.scalar(wanted, element))  # noqa: PLR0124 - NaN
    return emit("select", found, replacement, x)


@converts("FeatureVectorizer", domain=ML)
def feature_vectorizer(site: Site) -> Results:
    """All inputs side by side as float32 rows, each cut or filled with 0 to its number of columns."""
    dimensions = site.attribute("inputdimensions")
    if dimensions is not None and len(dimensions) != len(site.inputs):
        site.bad_attribute(f"attribute 'inputdimensions' has {len(dimensions)} entries for {len(site.inputs)} inputs")
    parts = []
    for index, x in enumerate(site.given):
        rank = site.rank(x)
        part = cast(site, x, F32)
        if rank != 2:
            part = reshape(site, part, (1, -1)) if rank == 1 else site.bad_shape(f"input {index} is {x.type}")
        parts.append(part if dimensions is None else _columns(site, part, dimensions[index]))
    return concat(site, parts, 1)


def _columns(site: Site, x: Value, wanted: int) -> Value:
    size = x.tensor.known_dims[1]
    if not isinstance(size, int):
        site.undecided("the number of columns of an input is unknown")
    if size > wanted:
        return Emit(site.b).slice(x, 1, 0, wanted)
    return site.b(Pad, x, site.integers(0, 0, 0, wanted - size)) if size < wanted else x


@converts("OneHotEncoder", domain=ML)
def one_hot_encoder(site: Site) -> Results:
    """1 where an element equals a category, along a new last dim. Floats are cut to integers, as categories are."""
    x, emit = site.input(0), Emit(site.b)
    categories = labels_of(site, "cats_int64s", "cats_strings")
    if categories is None:
        site.bad_attribute("it has neither 'cats_int64s' nor 'cats_strings'; expected one of them")
    is_text = x.tensor.element is STRING
    if is_text != (categories.dtype == STRING.dtype):
        site.bad_attribute(f"its categories are {element_of(categories.dtype)}; expected those of {x.type}")
    if not site.attribute("zeros"):
        site.refuse("an error for elements of no category", attribute="zeros")
    values = x if is_text else cast(site, x, I64)
    matches = emit("eq", emit.unsqueeze(values, (site.rank(x),)), site.b.constant(categories))
    return emit.cast(matches, F32)


@converts("CategoryMapper", domain=ML)
def category_mapper(site: Site) -> Results:
    """Integers to strings or back."""
    numbers, names = site.attribute("cats_int64s") or (), site.attribute("cats_strings") or ()
    if len(numbers) != len(names):
        site.bad_attribute(f"it has {len(numbers)} integers and {len(names)} strings; expected as many")
    integers, strings = np.array(numbers, np.int64), texts(names, (len(names),))
    if site.tensor(0).element is STRING:
        return _looked_up(site, strings, integers, np.array([site.attribute("default_int64")]))
    return _looked_up(site, integers, strings, texts([site.attribute("default_string")], (1,)))


@converts("LabelEncoder", domain=ML, until=1)
def label_encoder_by_class(site: Site) -> Results:
    """Strings to their place in a list, or places to strings."""
    names = site.attribute("classes_strings") or ()
    places, strings = np.arange(len(names)), texts(names, (len(names),))
    if site.tensor(0).element is STRING:
        return _looked_up(site, strings, places, np.array([site.attribute("default_int64")]))
    return _looked_up(site, places, strings, texts([site.attribute("default_string")], (1,)))


_KINDS: Final[dict[str, ElementType]] = {"strings": STRING, "int64s": I64, "floats": F32}
_DEFAULTS: Final = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}


@converts("LabelEncoder", domain=ML, since=2)
def label_encoder(site: Site) -> Results:
    """Keys to values; since version 4 both may be tensors of further types."""
    _, keys = _table(site, "keys")
    kind, values = _table(site, "values")
    if keys.size != values.size:
        site.bad_attribute(f"it has {keys.size} keys and {values.size} values; expected as many")
    if element_of(keys.dtype) is not site.tensor(0).element:
        site.bad_attribute(f"its keys are {element_of(keys.dtype)}; expected those of {site.tensor(0)}")
    return _looked_up(site, keys, values, _default(site, kind, element_of(values.dtype)))


def _table(site: Site, side: str) -> tuple[str, Array]:
    given = [kind for kind in (*_KINDS, "tensor") if site.attribute(f"{side}_{kind}") is not None]
    if len(given) != 1:
        site.bad_attribute(f"it has {len(given)} attributes '{side}_*'; expected one")
    kind, found = given[0], site.attribute(f"{side}_{given[0]}")
    if kind == "tensor":
        return kind, found.array.reshape(-1)
    if kind == "strings":
        return kind, texts(found, (len(found),))
    return kind, np.array(found, _KINDS[kind].dtype)


def _default(site: Site, kind: str, element: ElementType) -> Array:
    tensor = site.attribute("default_tensor")
    if tensor is not None:
        if tensor.type.element is not element or tensor.type.size != 1:
            site.bad_attribute(f"'default_tensor' is {tensor.type}; expected one element of {element}")
        return np.asarray(tensor.array).reshape(1)
    unset = {STRING: "_Unused"}.get(element, -0.0 if element.is_float else -1)
    default: Any = site.attribute(_DEFAULTS[kind]) if kind in _DEFAULTS else unset
    return texts([default], (1,)) if element is STRING else np.array([default], element.dtype)


def _looked_up(site: Site, keys: Array, values: Array, default: Array) -> Value:
    table = {"keys": keys, "values": values, "default": default}
    return site.b(TableLookup, site.input(0), **{name: Constant.of(array) for name, array in table.items()})


@converts("DictVectorizer", domain=ML)
def dict_vectorizer(site: Site) -> Results:
    """A map's values in the order of a vocabulary."""
    vocabulary = labels_of(site, "int64_vocabulary", "string_vocabulary")
    if vocabulary is None:
        site.bad_attribute("it has neither 'int64_vocabulary' nor 'string_vocabulary'; expected one of them")
    return site.b(MapVectorize, site.input(0), vocabulary=Constant.of(vocabulary))


@converts("CastMap", domain=ML)
def cast_map(site: Site) -> Results:
    """A map's values as a row, dense or at the columns that the keys say."""
    kinds: dict[str, ElementType] = {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STRING}
    to, form = str(site.attribute("cast_to")), str(site.attribute("map_form"))
    if to not in kinds or form not in {"DENSE", "SPARSE"}:
        site.bad_attribute(f"'cast_to' is '{to}' and 'map_form' '{form}'; expected {', '.join(kinds)}; DENSE or SPARSE")
    width = {} if form == "DENSE" else {"width": site.attribute("max_map")}
    return site.b(MapCast, site.input(0), to=kinds[to], **width)


@converts("ZipMap", domain=ML)
def zip_map(site: Site) -> Results:
    """A map a row, from labels to scores."""
    labels = labels_of(site, "classlabels_int64s", "classlabels_strings")
    if labels is None:
        site.bad_attribute("it has neither 'classlabels_int64s' nor 'classlabels_strings'; expected one of them")
    return site.b(ZipMap, site.input(0), labels=Constant.of(labels))
