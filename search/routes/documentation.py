"""The OpenAPI document as one plain page: no script, nothing from elsewhere, so it works without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

Node = dict[str, Any]

_HEAD = (
    "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
    "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    "<title>{title}: API</title><link rel='icon' href='static/icon.svg' type='image/svg+xml'>"
    "<link rel='stylesheet' href='static/docs.css'></head><body><main>"
)


def document(openapi: Node) -> str:
    info = openapi["info"]
    return "".join(
        [
            _HEAD.format(title=escape(info["title"])),
            f"<h1>{escape(info['title'])}</h1><p>{escape(info.get('description', ''))}</p>",
            "<p><a href='openapi.json'>openapi.json</a> says the same to machines. <a href='./'>The page</a></p>",
            *_operations(openapi),
            "<h2>Objects</h2>",
            *_objects(openapi),
            "</main></body></html>",
        ]
    )


def _operations(openapi: Node) -> Iterator[str]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('summary', ''))}. {escape(operation.get('description', ''))}</p>"
            if operation.get("parameters"):
                yield from _table(("parameter", "", "type", ""), map(_parameter, operation["parameters"]))
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if body:
                yield f"<p>Body: {_type(body['schema'])}</p>"
            rows = ((code, _response(response)) for code, response in operation["responses"].items())
            yield from _table(("status", "answer"), rows)
            yield "</section>"


def _parameter(parameter: Node) -> tuple[str, ...]:
    needed = "required" if parameter.get("required") else ""
    about = escape(parameter.get("description", parameter["schema"].get("description", "")))
    return f"<code>{escape(parameter['name'])}</code>", needed, _type(parameter["schema"]), about


def _response(response: Node) -> str:
    schema = next((content.get("schema") for content in response.get("content", {}).values()), None)
    return f"{escape(response['description'])} {_type(schema) if schema else ''}"


def _objects(openapi: Node) -> Iterator[str]:
    for name, schema in sorted(openapi.get("components", {}).get("schemas", {}).items()):
        yield f"<section id='{escape(name)}'><h3>{escape(name)}</h3><p>{escape(schema.get('description', ''))}</p>"
        needed = schema.get("required", ())
        rows = (
            (
                f"<code>{escape(field)}</code>",
                "required" if field in needed else "",
                _type(value),
                escape(value.get("description", "")),
            )
            for field, value in schema.get("properties", {}).items()
        )
        yield from _table(("field", "", "type", ""), rows)
        for example in schema.get("examples", ()):
            yield f"<pre>{escape(json.dumps(example, indent=2, ensure_ascii=False))}</pre>"
        yield "</section>"


def _table(titles: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"<table><tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
    yield "</table>"


def _type(schema: Node) -> str:
    """In a few words, with its limits; an object by a link to it."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "allOf" in schema:
        return " and ".join(_type(one) for one in schema["allOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"])
    words = escape(str(schema.get("type", "any")))
    if schema.get("type") == "array":
        words = f"list of {_type(schema.get('items', {}))}"
    names = {"minimum": "from", "maximum": "to", "minLength": "at least", "maxLength": "at most", "maxItems": "at most"}
    limits = [f"{words} {schema[name]}" for name, words in names.items() if name in schema]
    default = f", default {escape(json.dumps(schema['default']))}" if "default" in schema else ""
    return f"{words}{' (' + ', '.join(limits) + ')' if limits else ''}{default}"
