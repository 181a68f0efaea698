"""Every mechanism by its definition, written slowly and plainly in NumPy, frame by frame.

A new mechanism of the table needs a definition here.
"""

import math
from collections.abc import Callable

import numpy as np
from attention_case import Array, Case, K, attend, attend_by_head, softmax
from attention_forms import DIM, HEADS
from composed_definitions import composed, key_value, key_value_predict, multi_dimensional


def softmax_attention(case: Case) -> Array:
    memory = case.form.options.get("memory", 1024)
    return attend(case, lambda t, s: 0 <= t - s < memory if case.form.causal else True)


def local(case: Case) -> Array:
    options = {"window": 27, "dilation": 1, "global_tokens": 0, "global_projections": "shared"} | case.form.options
    dilations = [int(part) for part in str(options["dilation"]).split(",")]

    def sees(h: int, t: int, s: int) -> bool:
        if case.form.causal and s > t:
            return False
        if s < options["global_tokens"] or t < options["global_tokens"]:
            return True
        return abs(t - s) in [step * dilations[h % len(dilations)] for step in range(options["window"])]

    out = attend_by_head(case, sees)
    if options["global_projections"] == "own":
        out[: options["global_tokens"]] = attend_by_head(case, sees, "global_")[: options["global_tokens"]]
    return out


def sparse(case: Case) -> Array:
    options = {"pattern": "strided", "stride": 16, "arrange": "merged", "memory": 1024}
    options |= case.form.options
    stride = options["stride"]
    summary = options.get("summary", max(1, stride // 4))

    def sees(h: int, t: int, s: int) -> bool:
        if case.form.causal and not 0 <= t - s < options["memory"]:
            return False
        if options["pattern"] == "strided":
            near, far = abs(t - s) <= stride - 1, (t - s) % stride == 0
        else:
            near, far = t // stride == s // stride, s % stride in range(stride - summary, stride)
        return {"merged": near or far, "heads": (near, far)[h], "layers": near}[options["arrange"]]

    return attend_by_head(case, sees)


def adaptive_span(case: Case) -> Array:
    options = {"span": 4.0, "ramp": 0.5, "rate": 60} | case.form.options
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    reach = (max(case.weights["share"]) * options["span"] + options["ramp"]) * options["rate"]
    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, lambda t, s: abs(t - s) <= reach and (s <= t or not case.form.causal))
            if not seen:
                continue
            query = case.turned(case.head(q[t], h), t)
            keys = [case.turned(case.head(k[s], h), s) for s in seen]
            weights = softmax(np.array([(query * key.conj()).real.sum() / math.sqrt(K) for key in keys]))
            apart = np.array([abs(case.times[t] - case.times[s]) for s in seen])
            weights *= np.clip((case.weights["share"][h] * options["span"] - apart) / options["ramp"] + 1, 0, 1)
            out[t, h * K : (h + 1) * K] = weights / weights.sum() @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def blocks(case: Case) -> Array:
    block = case.form.options.get("block", 27)
    beyond = case.form.options.get("beyond", block)

    def sees(t: int, s: int) -> bool:
        memory = range(t - t % block - beyond, t - t % block + block + beyond)
        return s in memory and (s <= t or not case.form.causal)

    return attend(case, sees)


def transformer_xl(case: Case) -> Array:
    memory = case.form.options.get("memory", 81)
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    out = np.zeros_like(case.x)
    hertz = 0.1 * 100 ** (np.arange(K // 2) / (K // 2 - 1))
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, lambda t, s: 0 <= t - s <= memory if case.form.causal else True)
            if not seen:
                continue
            query, scores = case.head(q[t], h), []
            for s in seen:
                angles = 2 * math.pi * hertz * (case.times[t] - case.times[s])
                distance = case.weights["distance_proj.weight"][h * K : (h + 1) * K] @ [
                    *np.sin(angles),
                    *np.cos(angles),
                ]
                content = (query + case.weights["content_bias"][h]) @ case.head(k[s], h)
                scores.append((content + (query + case.weights["distance_bias"][h]) @ distance) / math.sqrt(K))
            out[t, h * K : (h + 1) * K] = softmax(np.array(scores)) @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def reformer(case: Case) -> Array:
    chunk, rounds = case.form.options.get("chunk", 32), case.form.options.get("rounds", 2)
    q, v = case.linear("qk_proj", case.x), case.linear("v_proj", case.x)
    valid = [s for s in case.frames if case.valid[s]]
    out = np.zeros_like(case.x)
    for h in range(HEADS):
        met: set[tuple[int, int]] = set()
        for directions in case.weights["directions"][h][:rounds]:
            near = {s: case.head(q[s], h) @ directions[:, : math.ceil(len(valid) / chunk)] for s in valid}
            bucket = {s: int(np.argmax([*near[s], *-near[s]])) for s in valid}
            ranked = sorted(valid, key=lambda s: (bucket[s], s))
            for place, t in enumerate(ranked):
                first = max(0, place // chunk - 1) * chunk
                met |= {(t, s) for s in ranked[first : (place // chunk + 1) * chunk]}
        for t in valid:
            query = case.turned(case.head(q[t], h), t)
            seen = [s for s in valid if (t, s) in met]
            keys = [case.turned(case.head(q[s], h), s) for s in seen]
            products = [(query * key.conj()).real.sum() / np.linalg.norm(key) for key in keys]
            scores = np.array([-1e5 if s == t else product for s, product in zip(seen, products, strict=True)])
            out[t, h * K : (h + 1) * K] = softmax(scores) @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def pooled(case: Case, name: str, x: Array, upto: int) -> Array:
    frames = [s for s in range(upto + 1) if case.valid[s]]
    if not frames:
        return np.zeros(DIM)
    scores = case.linear(name, x[frames]) / math.sqrt(K)
    return np.concatenate([softmax(scores[:, h]) @ case.head(x[frames], h) for h in range(HEADS)])


def fastformer(case: Case) -> Array:
    q, k = case.linear("q_proj", case.x), case.linear("k_proj", case.x)
    last = len(q) - 1
    p = k * pooled(case, "query_score", q, last)
    return case.linear("out_proj", case.linear("transform", q * pooled(case, "key_score", p, last)) + q)


def fastformer_cumulative(case: Case) -> Array:
    q, k = case.linear("q_proj", case.x), case.linear("k_proj", case.x)
    p = np.stack([k[t] * pooled(case, "query_score", q, t) for t in case.frames])
    mixed = np.stack([q[t] * pooled(case, "key_score", p, t) for t in case.frames])
    return case.linear("out_proj", case.linear("transform", mixed) + q)


def linformer(case: Case) -> Array:
    q = case.linear("q_proj", case.x)
    out = np.zeros_like(case.x)
    for h in range(HEADS):
        rows = [case.weights[name] for name in ("key_rows", "value_rows")]
        rows = [r[h] if r.ndim == 3 else r for r in rows]
        k, v = (
            case.head(case.linear(name, r[:, : len(case.x)] @ case.x), h)
            for name, r in zip(("k_proj", "v_proj"), rows, strict=True)
        )
        for t in case.frames:
            out[t, h * K : (h + 1) * K] = softmax(k @ case.head(q[t], h) / math.sqrt(K)) @ v
    return case.linear("out_proj", out)


def performer(case: Case) -> Array:
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    w = case.weights["random_features"]

    def phi(x: Array) -> Array:
        x = x / K**0.25
        largest = np.exp(w @ x).max()
        return (np.exp(w @ x) + 1e-6 * largest) * np.exp(-x @ x / 2)

    before = case.form.options.get("rotation") != "numerator"
    out = np.zeros_like(case.x)

    def features(x: Array, frame: int, h: int) -> Array:
        turned = case.turned(case.head(x[frame], h), frame)
        return phi(np.concatenate([turned.real, turned.imag]) if before else case.head(x[frame], h))

    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, lambda t, s: s <= t if case.form.causal else True)
            query, keys = features(q, t, h), [features(k, s, h) for s in seen]
            tops = (
                [query @ key for key in keys]
                if before
                else [
                    (case.turned(query, t) * case.turned(key, s).conj()).real.sum()
                    for key, s in zip(keys, seen, strict=True)
                ]
            )
            total = sum(query @ key for key in keys)
            for s, top in zip(seen, tops, strict=True):
                out[t, h * K : (h + 1) * K] += top / total * case.head(v[s], h)
    return case.linear("out_proj", out)


def fnet(case: Case) -> Array:
    length = len(case.x)
    over_time = np.exp(-2j * math.pi * np.outer(np.arange(length), np.arange(length)) / length)
    over_features = np.exp(-2j * math.pi * np.outer(np.arange(DIM), np.arange(DIM)) / DIM)
    return (over_time @ case.x @ over_features).real / math.sqrt(length * DIM)


def co_attention(case: Case) -> Array:
    x, z = np.split(case.linear("v_proj", case.x), 2, axis=1)
    alternating = case.form.options.get("order") == "alternating"

    def attended(name: str, queries: Array, others: Array) -> Array:
        q, k, v = (
            case.linear(f"halves.{name}.{part}_proj", rows)
            for part, rows in zip("qkv", (queries, others, others), strict=True)
        )
        out = np.zeros_like(queries)
        for t in case.frames:
            seen = case.seen(t, lambda t, s: True)
            for h in range(HEADS // 2 if seen else 0):
                scores = [
                    (case.turned(case.head(q[t], h), t) * case.turned(case.head(k[s], h), s).conj()).real.sum()
                    for s in seen
                ]
                out[t, h * K : (h + 1) * K] = softmax(np.array(scores) / math.sqrt(K)) @ case.head(v[seen], h)
        return queries + case.linear(f"halves.{name}.out_proj", out)

    new = attended("first", x, z)
    return case.linear("out_proj", np.concatenate([new, attended("second", z, new if alternating else x)], axis=1))


ORACLES: dict[str, Callable[[Case], Array]] = {
    "softmax": softmax_attention,
    "local": local,
    "sparse": sparse,
    "adaptive-span": adaptive_span,
    "blocks": blocks,
    "transformer-xl": transformer_xl,
    "fastformer": fastformer,
    "fastformer-cumulative": fastformer_cumulative,
    "reformer": reformer,
    "linformer": linformer,
    "performer": performer,
    "fnet": fnet,
    "composed": composed,
    "multi-dimensional": multi_dimensional,
    "key-value": key_value,
    "key-value-predict": key_value_predict,
    "co-attention": co_attention,
}
