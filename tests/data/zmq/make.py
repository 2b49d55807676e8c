"""Writes what Python's numpy, msgpack and msgpack-numpy make of arrays and of GR00T's requests: `python make.py FOLDER`.

`arrays.msgpack` maps names to the bytes of arrays whose elements count up from 0 in C order: `npy/...` are npy files, the
others messages with one array each. `messages.msgpack` maps names to a request and the answer that it must get from a policy
whose chunk counts up from 0 in steps of a quarter, all groups after one another.
"""

import io
import sys
from pathlib import Path

import msgpack
import msgpack_numpy
import numpy as np

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
SHAPES = [(), (3,), (2, 0, 3), (1, 2, 3)]
INSTRUCTION = "pick the pear"
CAMERA = "ego_view"
LANGUAGE = "annotation.human.action.task_description"


def counting(shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    # Calculating makes a number of an array without axes.
    return np.asarray(values % 2 if dtype == "bool" else values, dtype)


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    return file.getvalue()


def text_keys(array):
    return {
        "nd": True,
        "type": array.dtype.str,
        "kind": array.dtype.kind,
        "shape": array.shape,
        "data": array.tobytes(),
    }


def openpi(array):
    return {"__ndarray__": True, "data": array.tobytes(), "dtype": array.dtype.str, "shape": array.shape}


def binary(map_of):
    return lambda array: {key.encode(): value for key, value in map_of(array).items()}


MAPS = {
    "class": lambda array: {"__ndarray_class__": True, "as_npy": npy(array)},
    "msgpack_numpy": msgpack_numpy.encode,
    "text": text_keys,
    "openpi": binary(openpi),
    "openpi_text": openpi,
}


def pack(value, dialect):
    def default(item):
        return MAPS[dialect](item) if isinstance(item, np.ndarray) else item

    return msgpack.packb(value, default=default)


def arrays():
    made = {}
    for dtype in DTYPES:
        for shape in SHAPES:
            array = counting(shape, dtype)
            name = f"{dtype}/{'x'.join(map(str, shape))}"
            made[f"npy/{name}"] = npy(array)
            for dialect in MAPS:
                made[f"{dialect}/{name}"] = pack(array, dialect)
    made["other/version2"] = npy(counting((1, 2, 3), "float32"), (2, 0))
    made["other/version3"] = npy(counting((1, 2, 3), "float32"), (3, 0))
    made["other/fortran"] = npy(np.asfortranarray(counting((2, 3, 4), "int16")))
    made["other/big_endian"] = npy(counting((2, 3), ">f8"))
    made["other/big_fortran"] = npy(np.asfortranarray(counting((2, 3), ">u2")))
    made["refused/objects"] = pickled(np.array([None, "x"], dtype=object))
    made["refused/records"] = npy(np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]))
    made["refused/complex"] = npy(np.zeros(2, dtype="complex64"))
    made["refused/times"] = npy(np.zeros(2, dtype="datetime64[ns]"))
    made["refused/objects_msgpack_numpy"] = pack(np.array([None, "x"], dtype=object), "msgpack_numpy")
    made["refused/records_msgpack_numpy"] = pack(np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]), "msgpack_numpy")
    made["text/strings"] = npy(np.array(["pick", "añ"]))
    return made


def pickled(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def frames(*leading):
    return np.zeros((*leading, 64, 64, 3), np.uint8)


def chunk(shapes, prefix):
    start, groups = 0, {}
    for name, dim, shape in (("left_arm", 3, shapes[0]), ("gripper", 1, shapes[1])):
        values = np.arange(start, start + 2 * dim, dtype=np.float32) / 4
        groups[prefix + name] = values.reshape(shape)
        start += 2 * dim
    return groups


def flat(leading, dtype, instruction):
    return {
        f"video.{CAMERA}": frames(*leading, 1),
        "state.left_arm": np.array([0.5, -1.0, 2.0], dtype).reshape(*leading, 1, 3),
        "state.gripper": np.array([0.25], dtype).reshape(*leading, 1, 1),
        LANGUAGE: instruction,
    }


def nested():
    observation = flat((1,), np.float32, [[INSTRUCTION]])
    return {
        "video": {CAMERA: observation[f"video.{CAMERA}"]},
        "state": {name: observation[f"state.{name}"] for name in ("left_arm", "gripper")},
        "language": {LANGUAGE: [[INSTRUCTION]]},
    }


def messages():
    whole = [(1, 2, 3), (1, 2, 1)]
    n15 = {"endpoint": "get_action", "data": flat((), np.float64, [INSTRUCTION])}
    batched = {"endpoint": "get_action", "data": flat((1,), np.float64, np.array([INSTRUCTION]))}
    simulation = {"endpoint": "get_action", "data": {"observation": flat((1,), np.float32, (INSTRUCTION,)), "options": None}}
    n16 = {"endpoint": "get_action", "data": {"observation": nested(), "options": None}}
    exchanges = {
        "n15": (n15, chunk([(2, 3), (2,)], "action."), ["class"]),
        "n15_batched": (batched, chunk(whole, "action."), ["class"]),
        "simulation": (simulation, [chunk(whole, "action."), {}], ["class", "msgpack_numpy"]),
        "nested": (n16, [chunk(whole, ""), {}], list(MAPS)),
        "ping": ({"endpoint": "ping"}, {"status": "ok", "message": "Server is running"}, ["class"]),
        "reset": ({"endpoint": "reset", "data": {"options": None}}, {}, ["class"]),
    }
    return {
        f"{name}/{dialect}": {"request": pack(request, dialect), "answer": pack(answer, dialect)}
        for name, (request, answer, dialects) in exchanges.items()
        for dialect in dialects
    }


def main(folder):
    for name, made in (("arrays", arrays()), ("messages", messages())):
        (folder / f"{name}.msgpack").write_bytes(msgpack.packb(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
