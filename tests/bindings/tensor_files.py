"""Files of safetensors, for the tests of examples."""
import json
import struct

import numpy

TYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_tensors(path):
    """Returns the tensors and the metadata of a file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    spans = sorted(tensor["data_offsets"] for tensor in header.values())
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    assert [0, *ends] == [*begins, len(data) - 8 - size], "no gaps"

    def values(tensor):
        begin, end = (8 + size + offset for offset in tensor["data_offsets"])
        return numpy.frombuffer(data[begin:end], TYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return {name: values(tensor) for name, tensor in header.items()}, metadata


def write_tensors(path, tensors):
    """Writes tensors of float32 and int64."""
    header, offset = {}, 0
    for name, values in tensors.items():
        kind = "I64" if values.dtype == numpy.int64 else "F32"
        header[name] = {"dtype": kind, "shape": list(values.shape),
                        "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    data = b"".join(values.tobytes() for values in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
