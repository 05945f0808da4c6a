# SPDX-License-Identifier: Apache-2.0
"""The package in a notebook's kernel; skipped where nbclient and ipykernel are not installed.

Needs the package as test_package.py does: the kernel is a process of its own.
"""
import importlib.util
import unittest

CELLS = [
    """
import profllm
experiment = {
    "name": "notebook",
    "server": {"command": "sim", "model": "m", "max_model_len": 8192},
    "benchmark": {"dataset_name": "random", "tokenizer": "sim", "random_input_len": 8,
                  "random_output_len": 4, "num_prompts": 6, "ignore_eos": True},
}
document = profllm.run(experiment, warn=lambda text: None)
print(document["status"], type(document).__name__)
""",
    """
try:
    profllm.run({"benchmark": {"num_promts": 3}})
except profllm.Refused as e:
    print(e.lines[0])
""",
    "profllm.run(experiment, progress=False, warn=lambda text: None)['status']",
]


@unittest.skipUnless(importlib.util.find_spec("nbclient") and importlib.util.find_spec("ipykernel"),
                     "nbclient and ipykernel are not installed")
class Notebook(unittest.TestCase):
    def test_cells(self):
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        first, second, third = [cell.outputs for cell in notebook.cells]
        progress = [o for o in first if o.output_type == "display_data"]
        self.assertEqual(len(progress), 1, "one output that is rewritten")
        self.assertRegex(progress[0]["data"]["text/plain"], r"6/6 \(100 %\)")
        self.assertEqual([o.text for o in first if o.output_type == "stream"], ["completed dict\n"])
        self.assertIn("num_promts", second[0].text)
        self.assertEqual([o.output_type for o in third], ["execute_result"], "no progress was asked for")


if __name__ == "__main__":
    unittest.main()
