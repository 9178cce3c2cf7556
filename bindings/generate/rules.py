"""Rules of mpcore/core.h that declarations can break."""

import os
import re
from typing import Iterator

from .header import Model

# Enumerators with value 0: each names the absence of something.
ABSENCES = {"MP_SUCCESS", "MP_DTYPE_NONE", "MP_ACT_NONE", "MP_SOFTMAX_MASK_NONE", "MP_OP_CLASS_UNLISTED",
            "MP_STEP_OUTCOME_PENDING", "MP_SCALER_STATUS_OK", "MP_TENSOR_ROLE_ACTIVATION"}


def broken_rules(model: Model) -> Iterator[str]:
    for struct in model.structs:
        if struct.fields[0].name != "struct_size" and "Frozen" not in struct.doc:
            yield f"{struct.name} has no struct_size; its comment must contain \"Frozen\" and the reason"
    owners = {}
    for enum in model.enums:
        names = [name for name, _, _ in enum.values]
        prefix = re.match("MP_(.*_FLAG_|.*_|)", os.path.commonprefix(names))[0]
        other = owners.setdefault(prefix, enum.name)
        if other != enum.name and prefix != "MP_":
            yield f"{enum.name} and {other} have the same prefix {prefix}"
        if enum.name.endswith("_flags_t") != prefix.endswith("_FLAG_"):
            yield f"{enum.name}: the prefix {prefix} must end in _FLAG_ for flags only"
        for name, value, _ in enum.values:
            if value == 0 and name not in ABSENCES:
                yield f"{enum.name}: {name} = 0, but 0 means not set"
