"""Indexes of hnswlib, SVS and ScaNN for scripts/peers: built over its rows, searched by one thread, without filters.

Each is built as its authors recommend for a million rows, and searched with the setting that reaches a recall in the
least CPU time. `ladders` lists the settings: sequences of ever wider ones, one for each value of the other parameter.
"""
import ctypes
import itertools
import time

import numpy as np

K, SAMPLE = 10, 512
WIDTHS = [round(10 * 1.2**step) for step in range(26)]  # 10 to 954


class Library:
    """An index, and the rate at which it finds a share of the true neighbours.

    Subclasses define `name`, the build `parameters` as text, the `ladders` of settings, `build` from rows,
    `searcher` for a setting and a batch size (queries -> K ids per query), and `describe` for a setting.
    """

    def __init__(self, data):
        self.queries, self.truth, self.seen = data.queries, np.array(data.load("truth-None")), {}
        rows, times = np.array(data.base), [time.process_time()]
        self.build(rows)
        self.cost = {"name": self.name, "cpu_s": time.process_time() - times[0], "parameters": self.parameters}

    def ask(self, setting, batch, seconds=0.0, least=1):
        """Asks for at least so many seconds and so many queries; returns recall and rates."""
        total = len(self.queries)
        parts = [self.queries[first : first + batch] for first in range(0, total, batch)]
        search, found, asked = self.searcher(setting, batch), [], 0
        search(parts[-1])
        wall, cpu = time.perf_counter(), time.process_time()
        for part in itertools.cycle(parts):
            result = search(part)
            if asked < total:
                found.append(result)
            asked += len(part)
            if asked >= least and time.perf_counter() - wall >= seconds:
                break
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        mine = np.concatenate([np.asarray(ids).reshape(-1, K) for ids in found])
        hits = sum(np.isin(row, true).sum() for row, true in zip(mine, self.truth))
        rates = {"queries_per_s": asked / wall, "queries_per_cpu_s": asked / cpu}
        return {"recall": float(hits / self.truth[: len(mine)].size), **rates}

    def once(self, setting):
        """Asks all queries in batches of 256; memoised."""
        if setting not in self.seen:
            self.seen[setting] = self.ask(setting, 256, least=len(self.queries))
        return self.seen[setting]

    def least(self, ladder, target):
        """The narrowest setting of a ladder that reaches the target; None if none does."""
        low, high = 0, len(ladder)
        while low < high:
            middle = (low + high) // 2
            if self.once(ladder[middle])["recall"] >= target:
                high = middle
            else:
                low = middle + 1
        return ladder[low] if low < len(ladder) else None

    def best(self, target, batch, seconds):
        """The measurement of the best setting; without recall if the target cannot be reached."""
        able = [setting for ladder in self.ladders if (setting := self.least(ladder, target))]
        quick = [(self.ask(setting, batch, 0.5, SAMPLE)["queries_per_cpu_s"], setting) for setting in able]
        if not quick:
            return {"setting": None, "recall": None}
        setting = max(quick)[1]
        return {"setting": self.describe(setting), **self.ask(setting, batch, seconds, len(self.queries))}

    def measure(self, targets, batches, seconds):
        """Measures the best setting for every target and batch size."""
        return [
            {"who": self.name, "target": target, "batch": batch, **self.best(target, batch, seconds)}
            for target, batch in itertools.product(targets, batches)
        ]


class Hnswlib(Library):
    """A layered graph (HNSW) over f32."""

    name, parameters = "hnswlib", "M 32, ef_construction 200"
    ladders = [[(width,) for width in WIDTHS]]

    def build(self, rows):
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=rows.shape[1])
        self.index.init_index(max_elements=len(rows), M=32, ef_construction=200, random_seed=1)
        self.index.add_items(rows, num_threads=2)

    def searcher(self, setting, batch):
        self.index.set_ef(setting[0])
        return lambda queries: self.index.knn_query(queries, K, num_threads=1)[0]

    def describe(self, setting):
        return f"ef {setting[0]}"


class Vamana(Library):
    """A Vamana graph over f16, of Intel's Scalable Vector Search."""

    name, parameters = "SVS-Vamana", "f16, degree 64, window 128, alpha .95"
    ladders = [[(width,) for width in WIDTHS]]

    def build(self, rows):
        import svs

        given = svs.VamanaBuildParameters(alpha=0.95, graph_max_degree=64, window_size=128)
        self.index = svs.Vamana.build(given, rows.astype(np.float16), svs.DistanceType.MIP, num_threads=2)
        self.index.num_threads = 1

    def searcher(self, setting, batch):
        self.index.search_window_size = setting[0]
        return lambda queries: self.index.search(queries, K)[0]

    def describe(self, setting):
        return f"window {setting[0]}"


class Scann(Library):
    """Inverted lists with each row in two (SOAR), 4-bit product quantisation, rescoring in f32: Google's ScaNN."""

    name, parameters = "ScaNN", "2,000 leaves, SOAR 1.5, AH 2 at .2, AVX-512"
    ladders = [[(leaves, kept) for leaves in WIDTHS] for kept in (30, 50, 80, 120, 200, 300, 500)]

    def build(self, rows):
        from scann.scann_ops.py import scann_ops_pybind

        self.use_wide_registers(scann_ops_pybind.scann_pybind.__file__)
        builder = scann_ops_pybind.builder(rows, K, "dot_product").set_n_training_threads(2)
        builder = builder.tree(2000, 100, 250_000, soar_lambda=1.5, overretrieve_factor=2.0)
        self.index = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).build()

    @staticmethod
    def use_wide_registers(library):
        """Enables the processor's SIMD extensions: the wheel tests for them before it has read the CPU's features."""
        processor = open("/proc/cpuinfo", encoding="ascii").read()
        for flag in ("avx2", "avx512", "avx512_vnni"):
            name = f"should_use_{flag}"
            symbol = f"_ZN14research_scann14flags_internal{len(name)}{name}E"
            wanted = "avx512bw" if flag == "avx512" else flag
            ctypes.c_bool.in_dll(ctypes.CDLL(library), symbol).value = wanted in processor

    def searcher(self, setting, batch):
        leaves, kept = setting
        if batch == 1:
            return lambda queries: self.index.search(queries[0], K, kept, leaves)[0]
        return lambda queries: self.index.search_batched(queries, K, kept, leaves)[0]

    def describe(self, setting):
        return f"{setting[0]} leaves, {setting[1]} rescored"


LIBRARIES = {"hnswlib": Hnswlib, "svs": Vamana, "scann": Scann}
