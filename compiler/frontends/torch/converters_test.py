import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812 - its usual name

from compiler.errors import UnsupportedOperator  # noqa: E402
from compiler.frontends.torch import import_exported_program  # noqa: E402
from compiler.frontends.torch.harness_test import check, exported  # noqa: E402

X = torch.tensor([[-2.5, 0.0, 1.5, 3.0], [4.0, -1.0, -0.0, 2.5], [0.5, 7.0, -3.5, 1.0]])
Y = torch.tensor([[2.0, -3.0, 0.5, 1.0], [-1.5, 2.0, 3.0, -2.0], [1.0, -4.0, 2.0, 0.25]])
N = torch.tensor([-7, -4, -1, 0, 3, 8])
M = torch.tensor([3, -3, 2, -2, -5, 5])
SPECIAL = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -2.5])
IMAGE = torch.arange(2 * 3 * 7 * 8, dtype=torch.float32).reshape(2, 3, 7, 8).sin() * 3
ROWS = torch.tensor([[0, 2, 1], [1, 1, 0]])


def ids(cases):
    return [case[0] for case in cases]


SIGNS = [
    ("floor_divide integers", lambda a, b: a // b, N, M),
    ("floor_divide floats", lambda a, b: a // b, X, Y),
    ("floor mode", lambda a, b: torch.div(a, b, rounding_mode="floor"), X, Y),
    ("trunc mode", lambda a, b: torch.div(a, b, rounding_mode="trunc"), N, M),
    ("remainder integers", lambda a, b: a % b, N, M),
    ("remainder floats", lambda a, b: a % b, X, Y),
    ("remainder of a number", lambda a, b: torch.remainder(7, b) + a * 0, N, M),
    ("fmod", torch.fmod, X, Y),
    ("fmod integers", torch.fmod, N, M),
    ("shift left by too much", lambda a, b: a << b.abs() * 20, N, M),
    ("shift right of negatives", lambda a, b: a >> b.abs(), N, M),
    ("copysign of negative zero", torch.copysign, X, X.flip(0)),
    ("maximum with NaN", torch.maximum, SPECIAL, SPECIAL.flip(0)),
    ("fmax drops NaN", torch.fmax, SPECIAL, SPECIAL.flip(0)),
    ("clamp where bounds cross", lambda a, b: torch.clamp(a, 2, -2) + b * 0, X, Y),
    ("division by zero", lambda a, b: a / (b - b), X, Y),
]


@pytest.mark.parametrize(("name", "function", "a", "b"), SIGNS, ids=ids(SIGNS))
def test_signs_and_special_values(name, function, a, b):
    check(function, a, b, tolerance=1e-6)


TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8, torch.bool]


@pytest.mark.parametrize("left", TYPES, ids=str)
@pytest.mark.parametrize("right", TYPES, ids=str)
def test_types_are_promoted_as_torch_does(left, right):
    def forward(x, y):
        return x + y, x * y, x < y, torch.where(x == y, x, y), torch.cat([x, y]), x / (y + 1), y * x.sum()

    check(forward, torch.tensor([1, 0, 1]).to(left), torch.tensor([1, 1, 0]).to(right))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_numbers_do_not_widen_tensors_of_their_kind(dtype):
    x = torch.tensor([1, 0, 3]).to(dtype)
    check(lambda x: (x + 1, x * 2.5, x + True, 3 - x * 1, x == 1.5, x / 2, torch.where(x > 0, 1, 2.5)), x)


REDUCTIONS = [
    ("all dims", lambda x: (x.sum(), x.mean(), x.prod(), x.amax(), x.any())),
    ("no dims listed is all", lambda x: (x.sum([]), x.amax(()))),
    ("keepdim", lambda x: (x.sum(1, True), x.mean((0, 1), keepdim=True), x.max(0, True), x.argmax(keepdim=True))),
    ("negative dims", lambda x: (x.sum((-1, 0)), x.std(-1), x.logsumexp((-2, -1)))),
    ("ties take the first", lambda x: ((x > 0).int().argmax(1), (x > 0).to(torch.int64).max(1))),
    ("corrections", lambda x: (x.var(1, correction=0), x.var(), x.std(0, unbiased=False), torch.var_mean(x, 1))),
    ("integers sum as int64", lambda x: (x.int().sum(), (x > 0).sum(1), x.int().cumsum(0), (x > 0).prod())),
    ("norms", lambda x: [torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3.0, math.inf, -math.inf)]),
    ("running", lambda x: (x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), x.logcumsumexp(1))),
]


@pytest.mark.parametrize(("name", "function"), REDUCTIONS, ids=ids(REDUCTIONS))
def test_reductions(name, function):
    check(function, X, tolerance=1e-5)


def test_reductions_over_nothing():
    check(lambda x: (x.sum(0), x.prod(1), x.any(0), x.all(), x.amax(1), x.mean(1)), torch.zeros(0, 3))


def test_running_extremes_keep_the_last_of_equal_ones_and_every_nan():
    check(lambda x: (x.cummax(0), x.cummin(0)), torch.tensor([1.0, 3.0, 3.0, math.nan, 2.0, math.nan, 5.0]))


INDEXING = [
    ("rows and columns", lambda x: x[ROWS, ROWS]),
    ("a slice between", lambda x: x.reshape(3, 2, 2)[ROWS[0], :, ROWS[1]]),
    ("adjacent at the back", lambda x: x.reshape(3, 2, 2)[:, ROWS[1], ROWS[1]]),
    ("negative", lambda x: x[torch.tensor([-1, 0, -3])]),
    ("mask", lambda x: (x[x > 0], x[:, torch.tensor([True, False, True, False])], x[x[:, 0] > 0, 1])),
    ("put and accumulate", lambda x: torch.index_put(x, (ROWS[1], ROWS[0]), torch.ones(3), accumulate=True)),
    ("put a mask", lambda x: torch.index_put(x, (x > 1,), torch.tensor(-1.0))),
    ("put rows", lambda x: torch.index_put(x, (torch.tensor([2, 0]),), x[:2])),
    ("take", lambda x: (x.take(ROWS), torch.take_along_dim(x, x.argsort(1), 1), x.gather(1, ROWS))),
    ("masked scatter", lambda x: torch.masked_scatter(x, x > 0, x.flatten())),
    ("index ops", lambda x: (x.index_add(0, ROWS[0], x, alpha=2), x.index_copy(1, ROWS[0], x[:, :3]))),
    ("nonzero", lambda x: (x.nonzero(), torch.where(x > 0), torch.count_nonzero(x, 0))),
]


@pytest.mark.parametrize(("name", "function"), INDEXING, ids=ids(INDEXING))
def test_indexing(name, function):
    check(function, X)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_scatter_reduce(reduce, include, dtype):
    x, source = (X * 2).to(dtype), (Y * 2).to(dtype)
    check(lambda x, s: torch.scatter_reduce(x, 1, ROWS, s, reduce, include_self=include), x, source)


@pytest.mark.parametrize("descending", [True, False])
def test_sorting_is_stable_and_puts_nan_last(descending):
    x = torch.tensor([[1.0, 0.0, 1.0, math.nan, -0.0, 0.0, 1.0, -math.inf]])
    check(lambda x: torch.sort(x, dim=1, descending=descending, stable=True), x)
    check(lambda x: torch.sort(x > 0, dim=1, descending=descending, stable=True), x)


POOLING = [
    (f"{function.__name__} kernel {kernel} stride {stride} padding {padding}", function, kernel, stride, padding)
    for function in (F.avg_pool2d, F.max_pool2d)
    for kernel, stride, padding in ((3, 2, 1), (2, 3, 0), ((3, 2), (2, 3), (1, 0)))
]


@pytest.mark.parametrize(("name", "function", "kernel", "stride", "padding"), POOLING, ids=ids(POOLING))
def test_windows_that_ceil_mode_adds(name, function, kernel, stride, padding):
    check(lambda x: function(x, kernel, stride, padding, ceil_mode=True), IMAGE, tolerance=1e-5)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("divisor", [None, 5])
def test_divisors_of_average_pooling(include, divisor):
    def forward(x):
        return F.avg_pool2d(x, 3, 2, 1, True, include, divisor)

    check(forward, IMAGE, tolerance=1e-5)


def test_positions_of_maxima():
    x = IMAGE.clone()
    x[0, 0, 1:3, 1:3] = math.nan
    check(lambda x: F.max_pool2d(x, 2, 2, return_indices=True), x)
    check(lambda x: F.adaptive_max_pool2d(x.round(), (3, 2), return_indices=True), IMAGE)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("antialias", [True, False])
def test_resizing(mode, align, antialias):
    def forward(x):
        return F.interpolate(x, (4, 11), mode=mode, align_corners=align, antialias=antialias)

    check(forward, IMAGE, tolerance=2e-5)


@pytest.mark.parametrize("factor", [2.0, 0.6, 1.7])
@pytest.mark.parametrize("align", [True, False])
def test_resizing_by_a_factor(factor, align):
    check(lambda x: F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=align), IMAGE, tolerance=2e-5)
    check(lambda x: (F.interpolate(x, scale_factor=factor), F.interpolate(x, (5, 9), mode="nearest-exact")), IMAGE)


Q = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(1))


def test_a_query_that_sees_no_key_gives_zeros():
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    check(lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), Q, mask, tolerance=1e-5)


def test_attention_stays_whole():
    graph = check(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), Q, tolerance=1e-5)
    assert [op.name for op in graph.ops if op.name == "attention"]


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("both", [True, False])
def test_recurrent_networks(kind, both):
    module = kind(4, 5, num_layers=2, bidirectional=both, batch_first=True).eval()
    check(module, torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(2)), tolerance=1e-5)


def test_a_projected_network_is_decomposed():
    check(torch.nn.LSTM(4, 5, proj_size=3).eval(), torch.ones(3, 2, 4), tolerance=1e-5)


NORMS = [
    ("layer", lambda x: F.layer_norm(x, x.shape[2:])),
    ("group", lambda x: F.group_norm(x, 3, torch.ones(3), torch.ones(3))),
    ("instance", F.instance_norm),
    ("batch", lambda x: F.batch_norm(x, torch.ones(3), torch.full((3,), 2.0), eps=0.1)),
    ("batch of the data", lambda x: F.batch_norm(x, None, None, training=True)),
    ("rms", lambda x: F.rms_norm(x, x.shape[3:])),
    ("response", lambda x: F.local_response_norm(x, 2)),
]


@pytest.mark.parametrize(("name", "function"), NORMS, ids=ids(NORMS))
def test_normalizations(name, function):
    check(function, IMAGE, tolerance=1e-5)


def test_attention_that_drops_at_random_is_refused():
    with pytest.raises(UnsupportedOperator, match=r"random|no conversion"):
        import_exported_program(exported(lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5), X))


SHAPES = [
    ("views", lambda x: (x.reshape(2, -1), x.t().reshape(4, 3), x.flatten(), x.unflatten(1, (2, -1)), x.mT)),
    ("pieces", lambda x: (x.split(3, 1), x.chunk(3, 1), x.tensor_split(3, 1), x.unbind(0), x.tensor_split((1, 9), 1))),
    ("repetition", lambda x: (x.expand(2, 3, 4), x.repeat(2, 1, 1), x.tile(2), x.repeat_interleave(2, 1))),
    ("turning", lambda x: (x.flip((0, 1)), x.roll(5), x.roll((1, -1), (0, 1)), torch.rot90(x), torch.rot90(x, 3))),
    ("diagonals", lambda x: (x.diagonal(1), torch.diag_embed(x, -1), torch.diag(x[0], 2), x.tril(-1), x.triu(1))),
    ("windows", lambda x: (x.unfold(1, 2, 1), x.as_strided((2, 2), (3, 2), 1))),
    ("grids", lambda x: (*torch.meshgrid(x[0], x[:, 0], indexing="xy"), *torch.meshgrid(x[0], x[:, 0], indexing="ij"))),
    ("padding", lambda x: (F.pad(x, (1, -1, 2, 0), value=3), F.pad(x[None], (2, 1), "reflect"))),
]


@pytest.mark.parametrize(("name", "function"), SHAPES, ids=ids(SHAPES))
def test_shapes(name, function):
    check(function, X)


def test_convolutions():
    w = torch.randn(4, 3, 3, 2, generator=torch.Generator().manual_seed(3))

    def forward(x, w):
        b = w.flatten()[:4]
        return (
            F.conv2d(x, w, b, padding="same", dilation=(1, 2)),
            F.conv2d(x, w, b, stride=2, padding=(1, 0)),
            F.conv2d(x[0], w),
            F.conv_transpose2d(x, w.transpose(0, 1), b, stride=2, padding=1, output_padding=1),
        )

    check(forward, IMAGE, w, tolerance=2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_samples_of_a_grid(mode, padding):
    grid = torch.rand(2, 4, 5, 2, generator=torch.Generator().manual_seed(4)) * 3 - 1.5

    def forward(x, grid):
        return F.grid_sample(x, grid, mode, padding, align_corners=False)

    check(forward, IMAGE, grid, tolerance=1e-4)


def test_the_complement_of_erf_is_accurate_where_it_is_small():
    x = torch.tensor([-3.0, 0.0, 0.5, 1.9, 2.0, 3.0, 5.0, 8.0])
    graph = import_exported_program(exported(torch.erfc, x))
    from compiler.ops.interpreter import interpret

    (found,) = interpret(graph, [x.numpy()])
    expected = torch.erfc(x.double()).numpy()
    assert (abs(found / expected - 1) < 1e-6).all()


def test_gradients_of_core_operators():
    def forward(x):
        aten = torch.ops.aten
        _, places = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
        small = x[:, :, :3, :4].contiguous()
        return (
            aten.max_pool2d_with_indices_backward(small, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places),
            aten.avg_pool2d_backward(x[:, :, :4, :4], x, [3, 3], [2, 2], [1, 1], False, True, None),
            aten.avg_pool2d_backward(x[:, :, :4, :5], x, [3, 2], [2, 2], [1, 1], True, False, None),
            aten._adaptive_avg_pool2d_backward(small, x),
            aten.embedding_dense_backward(x[0, 0], torch.tensor([0, 2, 2, 1, 4, 0, 3]), 5, 2, False),
        )

    check(forward, IMAGE, tolerance=1e-5)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 3), (2, 1, 2, 1)])
def test_gradients_of_a_convolution(stride, padding, dilation, groups):
    w = torch.randn(6, 3 // groups, 3, 2, generator=torch.Generator().manual_seed(5))
    result = F.conv2d(IMAGE, w, None, stride, padding, dilation, groups)

    def forward(grad, x, w):
        sizes = [[size, size] for size in (stride, padding, dilation)]
        options = (False, [0, 0], groups, [True, True, True])
        return torch.ops.aten.convolution_backward(grad, x, w, [6], *sizes, *options)

    check(forward, result.cos(), IMAGE, w, tolerance=1e-4)
