"""The statements by which the runbook corrects the organisation of messages: docs/operations.md, as they stand there."""
import re

from support.services import ROOT


def of_organisation(wrong, right, campaign):
    text = (ROOT / "docs/operations.md").read_text()
    (statements,) = re.findall(r"### ReceiptdOtherOrganisation\n.*?```sql\n(.*?)```", text, re.S)
    return statements.replace("'wrong'", f"'{wrong}'").replace("'right'", f"'{right}'").replace("'c'", f"'{campaign}'")
