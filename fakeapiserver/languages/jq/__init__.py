"""jq's language: a lexer and parser that build filters, and what the filters call.

    query = compile_query('.status.conditions[] | select(.type == "Ready") | .status')   # JqSyntaxError
    query.run(pod)                                                                       # [..], JqError

Numbers are int or float as they come; what is no JSON never comes in. Steps are counted, so that no query runs forever. There is no
`$ENV`, `input`, `import` or `halt`.
Upstream: jq's manual, github.com/itchyny/gojq (whose errors and orders this follows where the two differ).
"""

from fakeapiserver.languages.jq.errors import JqError, JqSyntaxError
from fakeapiserver.languages.jq.query import Query, compile_query

__all__ = ["JqError", "JqSyntaxError", "Query", "compile_query"]
