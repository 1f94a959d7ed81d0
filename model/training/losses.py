"""The training losses of PAUSE (Cao et al., 2021, eq. 1-9), and the contrastive term that shapes the retrieval space.

Every loss is a scalar, and an empty batch costs 0 with a gradient of 0: a mini-batch may lack any of the subsets.
"""

import tensorflow as tf


def cross_entropy(logits, labels):
    """Eq. 1, one class a row: logits [N, C], one-hot labels [N, C]."""
    return _mean(-tf.cast(labels, logits.dtype) * tf.nn.log_softmax(logits))  # over C * N cells, as eq. 1 has it


def binary_cross_entropy(logits, labels):
    """Eq. 2, any number of classes a row: logits [N, C], multi-hot labels [N, C]."""
    # Eq. 2 as printed has only the positive half, whose optimum is f -> infinity everywhere: the negative half is ours.
    return _mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(labels, logits.dtype), logits=logits))


def nnpu_risk(positive, unlabelled, prior):
    """Eq. 7-8 for one class: logits [P], logits [U], prior in (0, 1). Without a positive or an unlabelled row, 0."""
    every_row = [True]
    return _nnpu_risks(positive[:, None], every_row, unlabelled[:, None], every_row, prior)[0]


def pu_loss(logits, labels, labelled, priors):
    """Eq. 9, the mean of nnpu_risk over classes: logits [N, C], labels [N, C], labelled bool [N], priors [C].

    A class without positives in the batch contributes 0, and so does every class when no row is unlabelled.
    """
    labelled = labelled[:, None]  # [N, 1]
    positive = labelled & (tf.cast(labels, logits.dtype) == 1)  # [N, C]; what an unlabelled row carries is no label
    return _mean(_nnpu_risks(logits, positive, logits, ~labelled, priors))


def contrastive(left, right, known, temperature):
    """Symmetric InfoNCE in the batch: raw vectors left [P, D] and right [P, D], known bool [P, P].

    known[i, j] says that (i, j) is a positive pair as well: it is no negative of row i, nor of column j.
    """
    left, right = tf.math.l2_normalize(left, axis=1), tf.math.l2_normalize(right, axis=1)
    similarity = tf.matmul(left, right, transpose_b=True) / temperature  # [P, P]
    pair = tf.linalg.diag_part(similarity)  # [P]
    # The diagonal is the numerator, so no row is ever masked out whole.
    negative = ~known | tf.eye(tf.shape(pair)[0], dtype=tf.bool)
    similarity = tf.where(negative, similarity, similarity.dtype.min)
    return _mean((tf.reduce_logsumexp(similarity, axis=1) + tf.reduce_logsumexp(similarity, axis=0)) / 2 - pair)


def _nnpu_risks(positive, is_positive, unlabelled, is_unlabelled, priors):
    """Eq. 7-8 for each class: logits [N, C] and [M, C] with masks that broadcast to them, priors [C] -> [C]."""
    # Masks rather than gathered rows: shapes stay static (XLA), and the graph does not grow with C.
    priors = tf.cast(priors, positive.dtype)
    is_positive = tf.broadcast_to(is_positive, tf.shape(positive))
    is_unlabelled = tf.broadcast_to(is_unlabelled, tf.shape(unlabelled))
    positive_risk = priors * _column_mean(tf.sigmoid(-positive), is_positive)
    negative_risk = (  # R_u^- - prior * R_p^-
        _column_mean(tf.sigmoid(unlabelled), is_unlabelled) - priors * _column_mean(tf.sigmoid(positive), is_positive)
    )
    # Below zero the negative risk is overfitted: the positive risk is dropped, and descent ascends the negative one.
    risks = tf.where(negative_risk >= 0, positive_risk + negative_risk, -negative_risk)
    comparable = tf.reduce_any(is_positive, axis=0) & tf.reduce_any(is_unlabelled, axis=0)
    return tf.where(comparable, risks, tf.zeros_like(risks))


def _mean(values):
    """The mean of all cells; of no cells, 0."""
    return tf.math.divide_no_nan(tf.reduce_sum(values), tf.cast(tf.size(values), values.dtype))


def _column_mean(values, counted):
    """The mean of the counted cells in each column: [N, C], bool [N, C] -> [C]; of no cells, 0."""
    weights = tf.cast(counted, values.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(values * weights, axis=0), tf.reduce_sum(weights, axis=0))
