"""The same model in sentence-transformers (torch) and in ONNX Runtime, as contestants in an environment of their own.

`peers.txt` pins that environment; nothing of it is imported by the rest of the house.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.peers.contestant import ContestantError, Encode, read_texts, take_part
from common.cpu import cap_instruction_set

REQUIREMENTS = Path("benchmarks/peers/requirements.txt")


def interpreter(directory: Path) -> str:
    """The Python of the peers' environment; ContestantError with the command that makes it where there is none."""
    python = directory / "bin" / "python"
    if not python.exists():
        raise ContestantError(
            f"no peers to measure against in {directory}; make them with `.venv/bin/uv venv --python 3.11 {directory} "
            f"&& .venv/bin/uv pip install --python {python} --requirement {REQUIREMENTS}` (about 5 GB), or name the "
            "folder with --peers"
        )
    return str(python)


def sentence_transformers(directory: str, max_tokens: int, _: Path) -> Encode:
    """Sorts by length by itself."""
    model = _sentence_transformer(directory, max_tokens)

    def encode(texts: list[str], batch_size: int) -> np.ndarray:
        return model.encode(texts, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False)

    return encode


def onnx_runtime(directory: str, max_tokens: int, graph: Path) -> Encode:
    """Tokenizer, length-sorted batches, and pooling inside the graph."""
    import onnxruntime

    model = _sentence_transformer(directory, max_tokens)
    if not graph.exists():
        _export(model, graph)
    tokenizer = model.tokenizer
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])

    def encode(texts: list[str], batch_size: int) -> np.ndarray:
        tokens = tokenizer(texts, truncation=True, max_length=max_tokens, return_attention_mask=False)["input_ids"]
        order = sorted(range(len(texts)), key=lambda row: -len(tokens[row]))
        vectors = np.zeros((len(texts), model.get_embedding_dimension()), np.float32)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            ids = np.full((len(rows), len(tokens[rows[0]])), tokenizer.pad_token_id, np.int64)
            for place, row in enumerate(rows):
                ids[place, : len(tokens[row])] = tokens[row]
            mask = (ids != tokenizer.pad_token_id).astype(np.int64)
            vectors[rows] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return vectors

    return encode


def _sentence_transformer(directory: str, max_tokens: int):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(directory, device="cpu")
    model.max_seq_length = max_tokens
    return model


def _export(model, graph: Path) -> None:
    """Token ids and mask -> unit vectors; batch and length stay free."""
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = model[0].auto_model.eval()

        def forward(self, input_ids, attention_mask):
            states = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # [B, T, H]
            weight = attention_mask.unsqueeze(-1).float()  # [B, T, 1]
            return torch.nn.functional.normalize((states * weight).sum(1) / weight.sum(1), dim=-1)

    partial = graph.with_suffix(".partial")
    names = ["input_ids", "attention_mask"]
    example = torch.randint(1000, 20000, (8, model.max_seq_length))
    free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=model.max_seq_length)}
    torch.onnx.export(
        Pooled(),
        (example, torch.ones_like(example)),
        str(partial),
        input_names=names,
        output_names=["vectors"],
        dynamo=True,
        external_data=False,
        dynamic_shapes=dict.fromkeys(names, free),
    )
    partial.rename(graph)


def main(name: str, directory: str, max_tokens: str, texts: str, vectors: str) -> None:
    cap_instruction_set()
    load = {"torch": sentence_transformers, "onnx": onnx_runtime}[name]
    graph = Path(vectors).with_name(f"base-encoder-{max_tokens}.onnx")
    take_part(lambda: load(directory, int(max_tokens), graph), read_texts(texts), Path(vectors))


if __name__ == "__main__":
    main(*sys.argv[1:])
