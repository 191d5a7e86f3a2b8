"""What `receiptd serve` says of itself, and whether its answers are like that."""

import copy
import functools
import json
import sys

from faults.servers import library


@functools.cache
def validators():
    """jsonschema, which comes with the checker of Kubernetes' manifests; behind what Debian has."""
    directory = library("fetch_kubernetes_validate")
    if directory not in sys.path:
        sys.path.append(directory)
    import jsonschema
    return jsonschema


def closed(schema):
    """The same, but for members that it does not name: the document lets them be, since a later release may add some."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    return [closed(one) for one in schema] if isinstance(schema, list) else schema


class Description:
    def __init__(self, document):
        self.document = document
        self.components = closed(copy.deepcopy(document["components"]))
        self.known = {}

    def routes(self):
        """(path, method, operation), as the table has them."""
        return [(path, method, operation) for path, methods in self.document["paths"].items() for method, operation in methods.items()]

    def faults(self, schema, value):
        """What is wrong with a value; empty: nothing."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self.known:
            jsonschema = validators()
            whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": self.components, **closed(schema)}
            jsonschema.Draft202012Validator.check_schema(whole)
            self.known[key] = jsonschema.Draft202012Validator(whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        return [f"{error.json_path}: {error.message}" for error in self.known[key].iter_errors(value)]

    def check(self, path, method, answer):
        """An answer of a route is what its operation says; a problem is always one."""
        responses = self.document["paths"][path][method.lower()]["responses"]
        content = responses.get(str(answer.status), responses["default"])["content"]
        kind = answer.headers["Content-Type"].partition(";")[0]
        assert kind in content, (path, answer)
        if kind != "text/csv":
            assert not (wrong := self.faults(content[kind]["schema"], answer.json)), (path, wrong, answer)

    def problem(self, answer):
        assert answer.headers["Content-Type"] == "application/problem+json", answer
        assert not (wrong := self.faults({"$ref": "#/components/schemas/Problem"}, answer.json)), (wrong, answer)
        assert answer.json["status"] == answer.status
