"""What PyTorch's own samples asked for: each beside eager torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from compiler.errors import UnsupportedOperator  # noqa: E402
from compiler.frontends.torch import import_exported_program  # noqa: E402
from compiler.frontends.torch.harness_test import check, exported  # noqa: E402
from compiler.ops.interpreter import interpret  # noqa: E402

GENERATOR = torch.Generator().manual_seed(11)
X = torch.randn(3, 4, generator=GENERATOR)
SQUARE = torch.randn(2, 4, 4, generator=GENERATOR, dtype=torch.float64)
POSITIVE = SQUARE @ SQUARE.mT + torch.eye(4, dtype=torch.float64)
COUNTS = torch.tensor([3, 1, 3, 0, 1, 3])
IMAGE = torch.randn(2, 3, 4, 5, generator=GENERATOR)


def ids(table):
    return [name for name, _ in table]


TRANSFORMS = [
    ("complex", lambda x: torch.fft.fft(torch.complex(x, x.flip(0)), dim=0)),
    ("real", lambda x: (torch.fft.rfft(x), torch.fft.fft2(x, norm="ortho"), torch.fft.ihfft(x))),
    ("back", lambda x: (torch.fft.irfft(torch.fft.rfft(x), n=4), torch.fft.hfft(torch.fft.fft(x), norm="forward"))),
    ("parts", lambda x: (torch.view_as_real(torch.polar(x.abs(), x)), torch.complex(x, x).conj().abs())),
    ("frames", lambda x: torch.stft(x.flatten(), 4, 2, return_complex=True, window=torch.ones(4))),
]


@pytest.mark.parametrize(("name", "function"), TRANSFORMS, ids=ids(TRANSFORMS))
def test_complex_numbers_and_transforms(name, function):
    check(function, X, tolerance=1e-5)


FACTORS = [
    ("solve", lambda a: torch.linalg.solve(a, a[..., :2])),
    ("solve from the right", lambda a: torch.linalg.solve(a, a[..., :2, :], left=False)),
    ("inverse", torch.linalg.inv),
    ("cholesky", lambda a: (torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True))),
    (
        "by cholesky",
        lambda a: (torch.cholesky_solve(a[..., :2], a.tril()), torch.cholesky_inverse(a.triu(), upper=True)),
    ),
    ("lu", lambda a: (*torch.linalg.lu(a), *torch.linalg.lu_factor(a))),
    ("by lu", lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a[..., :2])),
    ("by lu, adjoint", lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a[..., :2], adjoint=True)),
    ("by lu, right", lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a[..., :2, :], left=False)),
    ("triangular", lambda a: torch.linalg.solve_triangular(a, a[..., :2], upper=True)),
    ("triangular right", lambda a: torch.linalg.solve_triangular(a, a[..., :2, :], upper=False, left=False)),
    ("determinants", lambda a: (torch.linalg.det(a), *torch.linalg.slogdet(a), torch.logdet(a))),
    ("singular values", lambda a: (torch.linalg.svdvals(a), torch.linalg.matrix_norm(a, 2), torch.linalg.cond(a))),
    ("eigenvalues", lambda a: (torch.linalg.eigvalsh(a), torch.linalg.matrix_rank(a))),
    ("pseudo inverse", lambda a: (torch.linalg.pinv(a[..., :2]), torch.linalg.pinv(a, hermitian=True))),
    ("exponential", torch.linalg.matrix_exp),
]


@pytest.mark.parametrize(("name", "function"), FACTORS, ids=ids(FACTORS))
def test_factorizations(name, function):
    check(function, POSITIVE / 8, tolerance=1e-8)


STATISTICS = [
    ("median", lambda x: (x.median(), *x.median(1), *x.nanmedian(0, keepdim=True))),
    ("special functions", lambda x: (torch.lgamma(x), torch.special.i1e(x), torch.polygamma(1, x.abs()))),
    ("histogram", lambda x: (torch.histc(x, 5, -1, 1), torch.histc(x, 4))),
    ("neighbours", lambda x: torch.nextafter(x, torch.zeros_like(x))),
    ("flat places", lambda x: torch.put(x, torch.tensor([0, -1, 5]), x[0, :3], accumulate=True)),
    ("slices", lambda x: x.index_reduce(1, torch.tensor([0, 2, 0]), x[:, :3], "amax", include_self=False)),
    ("losses", lambda x: (F.margin_ranking_loss(x, x + 1, x.sign()), F.hinge_embedding_loss(x, x.sign()))),
]


@pytest.mark.parametrize(("name", "function"), STATISTICS, ids=ids(STATISTICS))
def test_statistics(name, function):
    check(function, X, tolerance=2e-6)


def test_not_a_number_is_the_median_where_there_is_one():
    check(lambda x: (x.median(), x.nanmedian(), *x.median(0), *x.nanmedian(0)), torch.tensor([2.0, float("nan"), 1.0]))


def test_integers_are_counted_and_divided():
    check(lambda x: (torch.bincount(x, minlength=6), torch.bincount(x, x * 0.5), torch.gcd(x * 6, x + 9)), COUNTS)
    check(lambda x: (torch.mode(x)[0], *torch.unique(x, return_inverse=True, return_counts=True)), COUNTS)
    check(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), COUNTS)


@pytest.mark.parametrize("own", [True, False])
def test_training_updates_running_statistics_that_are_inputs(own):
    norm = F.instance_norm if own else F.batch_norm

    def forward(x, mean, variance):
        mean, variance = mean.clone(), variance.clone()
        flag = {"use_input_stats": True} if own else {"training": True}
        return norm(x, mean, variance, momentum=0.3, **flag), mean, variance

    check(forward, IMAGE, torch.ones(3), torch.full((3,), 2.0), tolerance=1e-5)


def test_running_statistics_of_the_module_are_refused():
    with pytest.raises(UnsupportedOperator, match="keeps no state"):
        import_exported_program(exported(torch.nn.BatchNorm2d(3).train(), IMAGE))


def test_a_resized_tensor_begins_as_it_was():
    check(lambda x: (x.clone().resize_(2, 3), x.clone().resize_as_(x[0])), X)


def test_dropout_in_training_keeps_some_and_scales_them():
    graph = import_exported_program(exported(lambda x: F.dropout(x, 0.25, training=True), torch.ones(40, 50)))
    (found,) = interpret(graph, [np.ones((40, 50), np.float32)])
    assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.75)}
    # 2,000 draws: six standard deviations of the share are 0.058.
    assert abs((found == 0).mean() - 0.25) < 0.06
