"""The host conversions of the wheel `ttnn` 0.81.1, without a card: needs Python 3.12 and `pip install ttnn==0.81.1 torch`."""

import os
import tempfile

# Conversions ask for the alignment of a card's memory. One that is only described answers that.
BOARD = 0x41 << 36  # the kind of board, a p150, as a serial number has it
DESCRIPTION = f"""
arch: {{0: blackhole}}
chips: {{}}
chip_unique_ids: {{0: {BOARD}}}
chips_with_mmio:
  - 0: 0
ethernet_connections: []
ethernet_connections_to_remote_devices: []
harvesting:
  0: {{noc_translation: true, harvest_mask: 0, dram_harvesting_mask: 0, eth_harvesting_mask: 288, pcie_harvesting_mask: 2, l2cpu_harvesting_mask: 0}}
boards:
  -
    - board_id: {BOARD}
    - board_type: p150
    - chips: [0]
"""
_description = tempfile.NamedTemporaryFile("w", suffix=".yaml")
_description.write(DESCRIPTION)
_description.flush()
os.environ["TT_METAL_MOCK_CLUSTER_DESC_PATH"] = _description.name
os.environ.setdefault("TT_LOGGER_LEVEL", "off")
os.environ.setdefault("LOGURU_LEVEL", "ERROR")

import numpy as np
import ttnn
from ttnn._ttnn import bfp_utils
from ttnn._ttnn.multi_device import MeshCoordinate

FORMATS = {"bf16": ttnn.bfloat16, "bfp8_b": ttnn.bfloat8_b, "bfp4_b": ttnn.bfloat4_b}


def pack(matrix, name):
    """Bytes of the tiles of a torch matrix, as they would be uploaded."""
    tensor = ttnn.from_torch(matrix, dtype=FORMATS[name], layout=ttnn.TILE_LAYOUT)
    return np.from_dlpack(tensor.host_buffer().get_shard(MeshCoordinate([0, 0]))).view(np.uint8)


def unpack(packed, name):
    """f32 of tiles, in the order of the tiles' bytes."""
    function = {"bfp8_b": bfp_utils.unpack_bfp8, "bfp4_b": bfp_utils.unpack_bfp4}[name]
    return function(packed.view(np.uint32), row_major_output=False)
