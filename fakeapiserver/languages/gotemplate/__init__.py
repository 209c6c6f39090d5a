"""Go's text/template, with sprig's functions.

    template = parse("{{ range .items }}{{ .name | quote }} {{ end }}", FUNCTIONS)   # TemplateError
    template.execute({"items": [{"name": "a"}]})                                     # TemplateError

Values are JSON's: dict, list, str, bool, None, int, float, and `Number` for a JSON number whose text is kept (Go's json.Number).
Steps and output are counted, so that no template runs forever. Sprig's functions that read the server's machine (env,
expandenv, getHostByName) and those that create keys and certificates are left out.
Upstream: Go's text/template, github.com/Masterminds/sprig/v3.
"""

from fakeapiserver.languages.gotemplate.execute import Template, parse
from fakeapiserver.languages.gotemplate.functions import BUILTINS
from fakeapiserver.languages.gotemplate.values import Function, Number, TemplateError, function

__all__ = ["BUILTINS", "Function", "Number", "Template", "TemplateError", "function", "parse"]
