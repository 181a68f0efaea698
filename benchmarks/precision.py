"""INT8, FP16 and BF16 versions of 2D networks beside float32: time, and distance of the keypoints.

    python -m benchmarks.precision [--videos ../shared/videos] [--crops 60] [--rounds 5]

Needs `pip install openvino ai-edge-quantizer`. BlazePose full runs on LiteRT, OpenVINO and OpenCV, MoveNet Thunder on
ONNX Runtime, OpenVINO and OpenCV. INT8 versions are made here: dynamic (weights and, while running, activations), and
static, calibrated on crops of `squats.mp4` and `walk-by.mp4`. Crops of `dance.mp4` are measured. Printed, as a table:
median processor time of a crop with one thread, where all variants take turns crop by crop, so that other work on the
machine slows all of them; and the distance of the 2D joints from those of float32, in % of the side of the crop. A
variant that a library cannot load or run is a row without figures.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks.crops import crop, crop_matrices
from pose.networks.estimators.blazepose import LANDMARKS, OUTPUTS, SIDE, BlazePose, refine
from pose.networks.graph_model import convert
from pose.networks.litert import LiteRTModel, keep_outputs
from pose.networks.weights import locate
from pose.tracking.people_tracker import PeopleTracker
from pose.video import open_source

Network = Callable[[NDArray[np.uint8]], NDArray[np.floating]]  # crop (256, 256, 3) -> joints (J, 2) in sides
CALIBRATION = ("squats.mp4", "walk-by.mp4")
MEASURED = "dance.mp4"
FORCE_FP16 = 4  # flag of XNNPACK's delegate


class Recorder(BlazePose):
    """BlazePose that keeps the crops that it sees."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.crops = []

    def estimate(self, images, regions):
        for image, rows in zip(images, regions, strict=True):
            self.crops += [crop(image, matrix, (SIDE, SIDE)) for matrix in crop_matrices(rows, (SIDE, SIDE))]
        return super().estimate(images, regions)


def crops_of(clip: Path, count: int):
    """Return crops of tracked people, spread over the clip."""
    recorder = Recorder(model=locate("blazepose-landmark-full"))
    tracker = PeopleTracker(BlazePoseDetector(model=locate("blazepose-detector")), recorder)
    with open_source(str(clip)) as source:
        for frame in source:
            tracker.step(frame.image, frame.index, frame.time)
            if len(recorder.crops) >= 4 * count:
                break
    return recorder.crops[:: max(1, len(recorder.crops) // count)][:count]


def landmarks(raw, heat):
    """Return the joints of BlazePose (33, 2) from its outputs."""
    points = np.asarray(raw, np.float32).reshape(LANDMARKS, 5)[:, :2] / np.float32(SIDE)
    return refine(points, np.asarray(heat, np.float32).reshape(64, 64, LANDMARKS))[:33]


def scaled(image):
    return np.multiply(image, np.float32(1 / 255))[None]


def by_size(outputs):
    """Return landmarks and heat maps among outputs in any order."""
    named = {np.size(output): output for output in outputs}
    return named[LANDMARKS * 5], named[64 * 64 * LANDMARKS]


def litert(file: Path) -> Network:
    network = LiteRTModel(file, 1)
    source, *results = (
        detail["quantization"]
        for details in (network._interpreter.get_input_details(), network._interpreter.get_output_details())
        for detail in details
    )

    def run(image):
        pixels = scaled(image)
        network.input()[:] = np.rint(pixels / source[0] + source[1]).clip(-128, 127) if source[0] else pixels
        found = network.run()
        return landmarks(*by_size([
            (output.astype(np.float32) - zero) * scale if scale else output
            for output, (scale, zero) in zip(found, results, strict=True)
        ]))  # fmt: skip

    return run


def litert_fp16(file: Path) -> Network:
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.cpu_options import CpuOptions
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator
    from ai_edge_litert.options import Options

    cpu = CpuOptions(num_threads=1, xnnpack_flags=FORCE_FP16)
    model = CompiledModel.from_file(
        str(file), options=Options(hardware_accelerators=HardwareAccelerator.CPU, cpu_options=cpu)
    )
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    sizes = [LANDMARKS * 5, 1, 64 * 64 * LANDMARKS]

    def run(image):
        inputs[0].write(np.ascontiguousarray(scaled(image)))
        model.run_by_index(0, inputs, outputs)
        found = [output.read(size, np.float32) for output, size in zip(outputs, sizes, strict=True)]
        return landmarks(*by_size(found))

    return run


def openvino(file: Path, precision: str, prepare, read) -> Network:
    import openvino as ov

    core = ov.Core()
    settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    request = core.compile_model(core.read_model(file), "CPU", settings).create_infer_request()

    def run(image):
        return read(list(request.infer([prepare(image)]).values()))

    return run


def opencv(file: Path, prepare, read) -> Network:
    network = cv2.dnn.readNet(str(file))
    names = network.getUnconnectedOutLayersNames()

    def run(image):
        network.setInput(prepare(image))
        return read(network.forward(names))

    return run


def onnx(file: Path) -> Network:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda image: thunder_joints(session.run(None, {name: thunder_input(image)}))


def thunder_input(image):
    return image[None].astype(np.int64)


def thunder_joints(outputs):
    return np.asarray(outputs[0], np.float32).reshape(17, 3)[:, 1::-1]


def with_float32_weights(content: bytes) -> bytes:
    """Return a LiteRT model without its FP16 weights, which the quantiser does not know, and with a signature."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph, kept = model.subgraphs[0], []
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        source = graph.tensors[operator.inputs[0]]
        data = model.buffers[source.buffer].data
        if max(code.builtinCode, code.deprecatedBuiltinCode) != schema.BuiltinOperator.DEQUANTIZE or data is None:
            kept.append(operator)
            continue
        wide = np.frombuffer(np.asarray(data, np.uint8).tobytes(), np.float16).astype(np.float32)
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(wide.tobytes(), np.uint8)
        graph.tensors[operator.outputs[0]].buffer = len(model.buffers) - 1
    graph.operators = kept
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = b"serving_default", 0
    for name, tensors in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        maps = []
        for number, tensor in enumerate(tensors):
            maps.append(schema.TensorMapT())
            maps[-1].name, maps[-1].tensorIndex = f"{name}{number}".encode(), int(tensor)
        setattr(signature, name, maps)
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(len(content) * 3)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def quantised_tflite(content: bytes, out: Path, static: bool, crops) -> Path:
    """Write an INT8 version of a whole LiteRT file, with the outputs that are used."""
    from ai_edge_quantizer import quantizer, recipe

    plain = with_float32_weights(content)
    work = quantizer.Quantizer(plain, recipe.static_wi8_ai8() if static else recipe.dynamic_wi8_afp32())
    calibrated = None
    if static:
        calibrated = work.calibrate({"serving_default": [{"inputs0": scaled(image)} for image in crops]})
    pruned = bytearray(work.quantize(calibrated).quantized_model)
    keep_outputs(pruned, OUTPUTS)
    out.write_bytes(pruned)
    return out


def quantised_onnx(file: Path, out: Path, static: bool, crops) -> Path:
    """Write an INT8 version of an ONNX file, of its convolutions only."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter(crops)

        def get_next(self):
            image = next(self.left, None)
            return None if image is None else {name: thunder_input(image)}

    import onnxruntime

    name = onnxruntime.InferenceSession(str(file)).get_inputs()[0].name
    if not static:
        quantize_dynamic(file, out, weight_type=QuantType.QUInt8, op_types_to_quantize=["Conv"])
        return out
    ready = out.with_suffix(".ready.onnx")
    quant_pre_process(file, ready, skip_symbolic_shape=True)
    quantize_static(
        ready, out, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, op_types_to_quantize=["Conv"],
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return out


def variants(folder: Path, crops) -> dict[str, Callable[[], Network]]:
    """Return functions that load each network, by name; the first of each estimator is float32."""
    full, thunder = folder / "full.tflite", folder / "thunder.onnx"
    content = locate("blazepose-landmark-full").read_bytes()
    pruned = bytearray(content)
    keep_outputs(pruned, OUTPUTS)
    full.write_bytes(pruned)
    weights = locate("movenet-thunder")
    thunder.write_bytes(convert(locate("movenet-thunder-graph"), weights))

    def read(outputs):
        return landmarks(*by_size(outputs))

    made: dict[str, Callable[[], Network]] = {
        "full: LiteRT, float32": lambda: litert(full),
        "full: LiteRT, FP16": lambda: litert_fp16(full),
        "full: LiteRT, INT8 dynamic": lambda: litert(quantised_tflite(content, folder / "fd.tflite", False, crops)),
        "full: LiteRT, INT8 static": lambda: litert(quantised_tflite(content, folder / "fs.tflite", True, crops)),
        "full: OpenCV, float32": lambda: opencv(full, scaled, read),
        "Thunder: ONNX Runtime, float32": lambda: onnx(thunder),
        "Thunder: ONNX Runtime, INT8 dynamic": lambda: onnx(quantised_onnx(thunder, folder / "td.onnx", False, crops)),
        "Thunder: ONNX Runtime, INT8 static": lambda: onnx(quantised_onnx(thunder, folder / "ts.onnx", True, crops)),
        "Thunder: OpenCV, float32": lambda: opencv(thunder, thunder_input, thunder_joints),
    }
    for precision in ("f32", "f16", "bf16"):
        made[f"full: OpenVINO, {precision}"] = lambda p=precision: openvino(full, p, scaled, read)
        made[f"Thunder: OpenVINO, {precision}"] = lambda p=precision: openvino(
            thunder, p, thunder_input, thunder_joints
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=Path, default=Path("../shared/videos"))
    parser.add_argument("--crops", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    calibration = [one for clip in CALIBRATION for one in crops_of(options.videos / clip, options.crops)]
    crops = crops_of(options.videos / MEASURED, options.crops)
    networks: dict[str, Network] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, load in variants(Path(folder), calibration).items():
            try:
                network = load()
                network(crops[0])
                networks[name] = network
            except Exception as error:  # what a library raises for a network that it cannot run
                print(f"{name}: {type(error).__name__}: {str(error).strip()[:150]!r}", flush=True)
        times: dict[str, list[float]] = {name: [] for name in networks}
        joints: dict[str, list[NDArray[np.floating]]] = {name: [] for name in networks}
        for turn in range(options.rounds):
            for image in crops:
                for name, network in networks.items():
                    start = time.process_time()
                    found = network(image)
                    times[name].append(1000 * (time.process_time() - start))
                    if turn == 0:
                        joints[name].append(np.array(found))
    print("| network | ms | of float32 | median, % | 95 %, % |\n|---|---|---|---|---|")
    for name in sorted(networks, key=lambda one: (one.split(":")[0], float(np.median(times[one])))):
        exact = next(one for one in networks if one.split(":")[0] == name.split(":")[0])
        ratio = np.median(times[name]) / np.median(times[exact])
        apart = 100 * np.linalg.norm(np.array(joints[name]) - np.array(joints[exact]), axis=-1)
        figures = np.median(times[name]), ratio, np.median(apart), np.percentile(apart, 95)
        print(f"| {name} | {{:.1f}} | {{:.2f}} | {{:.2f}} | {{:.2f}} |".format(*figures))


if __name__ == "__main__":
    main()
