"""Run by a Python that has min-tfs-client and nothing of this project: host, port; texts as JSON -> the outputs."""

import json
import sys

import numpy as np
from min_tfs_client.requests import TensorServingClient
from min_tfs_client.tensors import tensor_proto_to_ndarray

client = TensorServingClient(sys.argv[1], int(sys.argv[2]))
response = client.predict_request("pause", {"text": np.array(json.load(sys.stdin))}, timeout=60)
found = {
    "embedding": tensor_proto_to_ndarray(response.outputs["embedding"]).tolist(),
    # Its own reader decodes no bytes.
    "model": [name.decode() for name in response.outputs["model"].string_val],
    "version": response.model_spec.version.value,
}
json.dump(found, sys.stdout)
