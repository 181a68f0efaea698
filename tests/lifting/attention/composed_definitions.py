"""The scores, distributions and places to look that `composed` and its relatives put together, each by its formula."""

import math

import numpy as np
from attention_case import Array, Case, K, softmax
from attention_forms import DIM, HEADS


def composed(case: Case) -> Array:
    """Each score, distribution and place to look by its formula, one pair of frames at a time."""
    plain = {"score": "scaled-dot", "distribution": "softmax", "position": "global", "window": None, "time": "rotary"}
    options = plain | case.form.options
    coded = case.x + time_code(case, options["time"])
    q, k = (case.linear(f"{x}_proj", coded) if f"{x}_proj.weight" in case.weights else coded for x in "qk")
    v = case.linear("v_proj", case.x)
    if options["time"] != "rotary":
        case.times = np.zeros_like(case.times)
    reach = options["window"] or (27 if options["position"] == "local" else 1024)

    def sees(t: int, s: int) -> bool:
        if options["position"] == "predicted":
            return s <= t or not case.form.causal
        if options["position"] == "global" and not case.form.causal:
            return True
        return abs(t - s) < reach and (s <= t or not case.form.causal)

    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, sees)
            if not seen:
                continue
            query = case.head(q[t], h)
            keys = case.head(k, h)
            pairs = [pair(case, options["score"], h, t, s, query, keys) for s in seen]
            weights = shared_out(case, options["distribution"], h, case.times[seen], pairs)
            if options["position"] == "predicted":
                weights = weights * nearness(case, h, t, seen, query, options["window"] or 27)
            out[t, h * K : (h + 1) * K] = weights @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def key_value(case: Case) -> Array:
    k, v = case.linear("k_proj", case.x), case.linear("v_proj", case.x)
    window = case.form.options.get("window", 27)
    out = np.zeros_like(case.x)
    for t in case.frames:
        seen = case.seen(t, lambda t, s: abs(t - s) < window and (s <= t or not case.form.causal))
        for h in range(HEADS if seen else 0):
            keys = case.head(k, h)
            scores = [told_time(case, "additive", h, case.times[t] - case.times[s], keys[t], keys[s]) for s in seen]
            out[t, h * K : (h + 1) * K] = softmax(np.array(scores)) @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def key_value_predict(case: Case) -> Array:
    predicted = case.linear("p_proj", case.x) @ case.weights["predict_proj.weight"].T
    return np.tanh(key_value(case) + predicted)


def multi_dimensional(case: Case) -> Array:
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    memory = case.form.options.get("memory", 1024)
    out = np.zeros_like(case.x)
    for t in case.frames:
        seen = case.seen(t, lambda t, s: 0 <= t - s < memory if case.form.causal else True)
        for h in range(HEADS if seen else 0):
            queries, keys = case.head(q, h), case.head(k, h)
            rows = [feature_scores(case, h, case.times[t] - case.times[s], queries[t], keys[s]) for s in seen]
            for feature in range(K):
                shares = softmax(np.array([row[feature] for row in rows]))
                out[t, h * K + feature] = shares @ v[seen, h * K + feature]
    return case.linear("out_proj", out)


def time_code(case: Case, name: str) -> Array:
    if name == "sinusoidal":
        seconds = case.times - case.times[case.valid][0]
        angles = 2 * math.pi * seconds[:, None] * 0.1 * 100 ** (np.arange(DIM // 2) / (DIM // 2 - 1))
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    return case.weights["time.codes"][: len(case.x)] if name == "learnt" else np.zeros_like(case.x)


def pair(case: Case, name: str, h: int, t: int, s: int, query: Array, keys: Array) -> tuple[float, float]:
    """The score of a query and key s of `keys`, and how far the two are apart."""
    key = keys[s]

    def own(parameter: str) -> Array:
        return case.weights[f"score.{parameter}"][h]

    if name == "location":
        return float(own("scale") * np.tanh(query @ own("weight"))[s]), math.nan
    if name == "feature":
        segment = np.stack([keys[i] for i in range(max(s - 4, 0), s + 1) if case.valid[i]])
        spread = np.sqrt(segment.var(axis=0) + 1e-6)
        hidden = segment.mean(axis=0) @ own("mean_weight") + spread @ own("spread_weight") + own("bias")
        return float(own("out") @ np.tanh(hidden + own("count_weight") * math.log(len(segment)))), math.nan
    if name in ("additive", "deep", "kernel"):
        return told_time(case, name, h, case.times[t] - case.times[s], query, key), math.nan
    if "general" in name:
        query = query @ own("weight")
    if name == "biased-general":
        query = query + own("bias")
    a, b = case.turned(query, t), case.turned(key, s)
    product = float((a * b.conj()).real.sum())
    if name == "scaled-dot":
        product /= math.sqrt(K)
    if name == "cosine":
        product *= math.log1p(math.exp(own("sharpness"))) / (np.linalg.norm(query) * np.linalg.norm(key))
    if name == "activated-general":
        product = float(own("scale") * math.tanh(product + own("bias")))
    return product, float(np.abs(a - b).sum())


def time_term(case: Case, h: int, seconds: float) -> float:
    angles = 2 * math.pi * seconds * 0.1 * 100 ** (np.arange(K // 2) / (K // 2 - 1))
    return float(case.weights["score.time"][h] @ np.concatenate([np.cos(angles), np.sin(angles)]))


def feature_scores(case: Case, h: int, seconds: float, query: Array, key: Array) -> Array:
    own = {name: case.weights[f"score.{name}"][h] for name in ("query_weight", "key_weight", "bias", "out")}
    hidden = np.tanh(query @ own["query_weight"] + key @ own["key_weight"] + own["bias"])
    return hidden @ own["out"] + time_term(case, h, seconds)


def told_time(case: Case, name: str, h: int, seconds: float, query: Array, key: Array) -> float:
    def own(parameter: str) -> Array:
        return case.weights[f"score.{parameter}"][h]

    time = time_term(case, h, seconds)
    if name == "kernel":
        return float((np.maximum(query, 0) + 1e-3) @ (np.maximum(key, 0) + 1e-3) * math.exp(time))
    hidden = np.tanh(query @ own("query_weight") + key @ own("key_weight") + own("bias"))
    if name == "deep":
        hidden = np.tanh(hidden @ own("hidden_weight") + own("hidden_bias"))
    return float(own("out") @ hidden + time)


def shared_out(case: Case, name: str, h: int, times: Array, pairs: list[tuple[float, float]]) -> Array:
    scores = np.array([score for score, _ in pairs])
    if name == "softmax":
        return softmax(scores)
    if name == "ratio":
        return scores / scores.sum()
    if name in ("hard", "straight-through"):  # out of training
        return (np.arange(len(scores)) == scores.argmax()).astype(float)
    if name.startswith("continuous"):
        return over_time(name, softmax(scores), (times - times[0]) / max(np.ptp(times), 1e-12))
    if name == "sigmoid":
        return 1 / (1 + np.exp(-(scores - math.log(len(scores)))))
    if name == "coda":
        apart = np.array([distance for _, distance in pairs])
        return np.tanh(scores) * 2 / (1 + np.exp(apart / math.sqrt(K)))
    alpha = {"sparsemax": 2.0, "entmax15": 1.5}.get(name)
    if alpha is None:
        alpha = 1 + 1 / (1 + math.exp(-case.weights["distribution.sharpness"][h]))

    def weights(tau: float) -> Array:
        return np.maximum((alpha - 1) * scores - tau, 0) ** (1 / (alpha - 1))

    low, high = (alpha - 1) * scores.max() - 1, (alpha - 1) * scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle).sum() > 1 else (low, middle)
    return weights(low)


def over_time(name: str, shares: Array, places: Array) -> Array:
    """The weight of each value, by what becomes of a value of 1 there and 0 elsewhere: a ridge regression over time,
    integrated with the density in many small steps."""
    mean = shares @ places
    variance = shares @ (places - mean) ** 2 + 1e-4
    sigmas = 9 if name == "continuous" else math.sqrt(5)
    grid = mean + sigmas * math.sqrt(variance) * np.linspace(-1, 1, 4001)
    density = 1 - (grid - mean) ** 2 / (5 * variance)
    if name == "continuous":
        density = np.exp(-((grid - mean) ** 2) / (2 * variance))
    density[1:-1] *= np.where(np.arange(1, 4000) % 2, 4, 2)  # Simpson's rule
    centres = np.linspace(0, 1, 8)

    def basis(places: Array) -> Array:
        return np.exp(-(((places[:, None] - centres) / (centres[1] - centres[0])) ** 2) / 2)

    values = np.eye(len(places))
    coefficients = np.linalg.solve(basis(places).T @ basis(places) + 1e-2 * np.eye(8), basis(places).T @ values)
    return np.asarray(density @ basis(grid) @ coefficients / density.sum())


def nearness(case: Case, h: int, t: int, seen: list[int], query: Array, window: int) -> Array:
    share = np.tanh(query @ case.weights["centre.weight"][h]) @ case.weights["centre.out"][h]
    share = 1 / (1 + math.exp(-share))
    last = max(s for s in case.frames if case.valid[s])
    centre = t - window * share if case.form.causal else last * share
    return np.exp(-((np.array(seen) - centre) ** 2) / (2 * (window / 2) ** 2))
