"""The model as it is served: plain strings in, unit vectors and the model's fingerprint out."""

from __future__ import annotations

import tensorflow as tf

from model.network.saved import PauseModel

# Texts of one request are encoded in runs of this many padded tokens, longest first: a request of a thousand long
# texts then needs no more memory than one of thirty, and short texts are not padded to the longest of all.
TOKENS_PER_RUN = 4096

TEXTS = tf.TensorSpec([None], tf.string, name="text")


class ServedModel(tf.Module):
    """Signatures `serving_default` and `contract`; `tokens` and `vectors` are their two halves, for servers that
    batch by tokens or compile for themselves."""

    def __init__(self, model: PauseModel):
        super().__init__(name="pause")
        self._encoder = model.encoder
        self._tokenizer = model.encoder.tokenizer
        contract = model.contract
        self._fingerprint = tf.constant(contract.fingerprint)
        self._contract = tf.constant(contract.to_json())
        self._dimension = contract.dimension

    @property
    def signatures(self) -> dict:
        return {"serving_default": self.serve, "contract": self.contract}

    @tf.function(input_signature=[TEXTS])
    def serve(self, text):
        return {"embedding": self._embed(text), "model": tf.fill(tf.shape(text), self._fingerprint)}

    @tf.function(input_signature=[TEXTS])
    def contract(self, text):
        return {"contract": tf.fill(tf.shape(text), self._contract)}

    @tf.function(input_signature=[TEXTS])
    def tokens(self, text):
        """Strings [n] -> token ids of all texts end to end, int32 [sum], how many each has, int64 [n], and the id that
        pads them, int32."""
        ids = self._tokenizer(text)
        return {"ids": ids.flat_values, "lengths": ids.row_lengths(), "pad": tf.constant(self._tokenizer.pad_id)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="token_ids")])
    def vectors(self, token_ids):
        """Padded token ids [n, t] -> unit vectors [n, d]."""
        return tf.math.l2_normalize(self._encoder(token_ids), axis=-1)

    def _embed(self, text):
        ids = self._tokenizer(text)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)
        count = tf.size(order)
        runs = tf.TensorArray(
            tf.float32, size=0, dynamic_size=True, infer_shape=False, element_shape=[None, self._dimension]
        )

        def encode_run(start, number, runs):
            longest = lengths[order[start]]
            stop = tf.minimum(count, start + tf.maximum(1, TOKENS_PER_RUN // longest))
            rows = self._tokenizer.pad(tf.gather(ids, order[start:stop]))
            return stop, number + 1, runs.write(number, self.vectors(rows))

        _, _, runs = tf.while_loop(
            lambda start, number, runs: start < count, encode_run, (0, 0, runs), parallel_iterations=1
        )
        sorted_vectors = tf.ensure_shape(runs.concat(), [None, self._dimension])
        return tf.gather(sorted_vectors, tf.argsort(order, stable=True))
