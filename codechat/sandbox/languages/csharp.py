"""C#."""

import re

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar, Written, brackets_end, parts

QUESTIONS = """
(class_declaration name: (identifier) @class) (struct_declaration name: (identifier) @class)
(interface_declaration name: (identifier) @class) (enum_declaration name: (identifier) @class)
(record_declaration name: (identifier) @class) (delegate_declaration name: (identifier) @class)
(method_declaration returns: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(local_function_statement type: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(parameter type: (_) @parameter.type name: (identifier) @parameter.name) @parameter
(parameter_list type: (_) @parameter @parameter.type name: (identifier) @parameter.name)
(parameter name: (identifier) @variable) (parameter_list name: (identifier) @variable)
(variable_declarator name: (identifier) @variable) (foreach_statement left: (identifier) @variable)
(declaration_expression name: (identifier) @variable) (declaration_pattern name: (identifier) @variable)
(catch_declaration name: (identifier) @variable) (property_declaration name: (identifier) @variable)
(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression name: (identifier) @call))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @call)))
(member_binding_expression name: (identifier) @call)
(member_binding_expression name: (generic_name (identifier) @call))
(using_directive name: (identifier) @alias [(identifier) (qualified_name) (generic_name)] @alias.of .)
(await_expression "await" @call)
(member_access_expression name: (identifier) @property.member)
(using_directive [(identifier) (qualified_name) (generic_name)] @import.path .) @import
(comment) @comment
[(string_literal) (verbatim_string_literal) (raw_string_literal) (interpolated_string_expression)
  (character_literal)] @string
(_ type: (identifier) @type) (generic_name (identifier) @type)
(array_type) @makes.array
(tuple_type) @makes.tuple
(lambda_expression) @feature.lambda
[(block) (declaration_list) (enum_member_declaration_list) (switch_body)] @block
(binary_expression operator: _ @operator) (assignment_expression operator: _ @operator)
(variable_declarator "=" @operator) (property_declaration "=" @operator) "," @operator
"""


def form(text: str) -> str:
    """A type of C# in the common form: without question marks, `Array<Array<int>>` of `int[,]`, no names in tuples."""
    text = re.sub(r"^(?:(?:ref|readonly|scoped|in|out|params|this)\s+)+", "", text.strip()).replace("?", "")
    while found := re.search(r"\[(,+)\]$", text):
        text = "Array<" * (len(found[1]) + 1) + text[: found.start()] + ">" * (len(found[1]) + 1)
    end = brackets_end(text)
    if text.startswith("(") and text[end - 1] == ")":
        inside = [re.sub(r"(?<=[\w>\])])\s+\w+$", "", part) for part in parts(text[1 : end - 1], ",")]
        text = f"({', '.join(inside)}){text[end:]}"
    return text


CUSTOMS = Customs(
    types=Written(
        kinds={
            "list": """ilist ireadonlylist ienumerable icollection ireadonlycollection readonlycollection memory
                readonlyspan immutablelist immutablearray iasyncenumerable observablecollection""",
            "set": "iset ireadonlyset immutablehashset frozenset",
            "map": """dictionary idictionary ireadonlydictionary sorteddictionary concurrentdictionary sortedlist
                immutabledictionary hashtable""",
            "tuple": "valuetuple keyvaluepair",
            "json": "jsonelement jsondocument jobject jtoken",
            "integer": "sbyte ushort ulong nint nuint",
            "float": "single half",
            "inferred": "dynamic expandoobject",
            "wrapper": "valuetask nullable lazy actionresult iasyncresult",
        },
        form=form,
    )
)
register(
    Coded(("csharp", "c#", "cs"), Grammar("tree_sitter_c_sharp", QUESTIONS, "csharp", customs=CUSTOMS), labels=("cs",))
)
