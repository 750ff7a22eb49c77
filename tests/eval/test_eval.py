"""Unit tests of the evaluation itself: `python3 -B -m unittest discover -s tests/eval`."""
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import canary
import cases
import compare
import defects
import grade
import lookup
import new_case
import play
import scenes
import statistic
import table
import usage


class Statistics(unittest.TestCase):
    def test_mcnemar_is_exact(self):
        pairs = [(True, False)] * 8 + [(False, True)] * 1 + [(True, True)] * 5
        self.assertAlmostEqual(statistic.mcnemar(pairs), 2 * (1 + 9) / 2 ** 9)
        self.assertEqual(statistic.mcnemar([(True, False), (False, True)]), 1.0)
        self.assertIsNone(statistic.mcnemar([(True, True), (False, False)]))

    def test_recovered_is_the_way_from_the_repository_to_all_that_is_known(self):
        self.assertAlmostEqual(statistic.recovered(0.7, 0.2, 1.0), 0.625)
        self.assertIsNone(statistic.recovered(0.7, 0.2, 0.2))
        self.assertIsNone(statistic.recovered(None, 0.2, 1.0))

    def test_the_interval_holds_the_mean_and_is_the_same_again(self):
        samples = [0, 1] * 20
        low, high = statistic.bootstrap(samples, statistic.share)
        self.assertTrue(0.3 < low < 0.5 < high < 0.7, (low, high))
        self.assertEqual([low, high], statistic.bootstrap(samples, statistic.share))
        self.assertIsNone(statistic.bootstrap([1], statistic.share))

    def test_cost_is_by_a_million(self):
        self.assertAlmostEqual(statistic.cost({"input": 2_000_000, "output": 100_000, "cached": 5}, {"input": 3, "output": 15}), 7.5)


class Lookups(unittest.TestCase):
    READ = [("briefing", "HEAD moved from 111 to 222"), ("facts", "- HEAD: `222aaa`"),
            ("document", "- Rule: never X\n- UNVERIFIED: Y is so\n\nverified: at 111bbb1\n")]

    def test_what_was_read_is_found_with_how_sure_it_is(self):
        self.assertEqual(lookup.answer({"find": "Rule: (.+)"}, self.READ)["answer"], "never X")
        self.assertEqual(lookup.answer({"find": "UNVERIFIED: (.+)"}, self.READ)["status"], "unverified")
        self.assertEqual(lookup.answer({"find": "Rule: (.+)"}, self.READ)["status"], "stated")

    def test_what_was_not_read_is_not_known(self):
        for spec in ({"find": "Colour: (.+)"}, {}, {"find": "Rule: (.+)", "in": ["facts"]}):
            self.assertEqual(lookup.answer(spec, self.READ), lookup.NOT_KNOWN)

    def test_facts_and_drift_make_a_claim_stale(self):
        spec = {"find": r"verified: at (\w+)", "against": r"^- HEAD: `(\w+)`"}
        self.assertEqual(lookup.answer(spec, self.READ)["status"], "stale")
        same = [("facts", "- HEAD: `111bbb1f`"), self.READ[2]]
        self.assertEqual(lookup.answer(spec, same)["status"], "stated")
        denied = {"find": r"verified: at (\w+)", "denied_by": r"HEAD moved from \w+ to (\w+)"}
        self.assertEqual(lookup.answer(denied, self.READ)["now"], "222")
        self.assertEqual(lookup.answer(denied, [self.READ[2]])["status"], "stated")


class Cases(unittest.TestCase):
    def test_each_case_has_facts_and_two_traps_and_says_no_answer_in_its_questions(self):
        every = cases.every()
        self.assertGreaterEqual(len(every), 12)
        self.assertGreaterEqual(len([case for case in every if 3 <= len(case.documents) <= 5]), 2)
        self.assertGreaterEqual(len({case.data["language"] for case in every}), 3)
        for case in every:
            kinds = [question.kind for question in case.questions.values()]
            self.assertGreaterEqual(len([kind for kind in kinds if kind in cases.TRAPS]), 2, case.name)
            self.assertTrue({"goal", "rule", "decision", "dead_end", "number", "half_made", "side_effect", "next"} <= set(kinds), case.name)
            prompt = case.prompt().lower()
            for question in case.questions.values():
                for token in question.tokens:
                    self.assertNotIn(token.lower(), prompt, case.name)
                    if len(token) > 8 and not token.startswith("re:"):
                        self.assertNotIn(token, question.lookup.get("find") or "", "%s/%s" % (case.name, question.name))

    def test_no_file_holds_a_credential(self):
        for case in cases.every():
            for file in [file for file in case.folder.rglob("*") if file.is_file()]:
                self.assertNotIn(case.secret, file.read_text(encoding="utf-8"), str(file))

    def test_good_documents_are_many(self):
        self.assertGreaterEqual(len(defects.good()[0]), 20)

    def test_grading_tells_the_three_places_apart(self):
        questions = {"goal": cases.Question("goal", ["Be quick"]), "number": cases.Question("number", ["7 ms"]),
                     "next": cases.Question("next", ["`make`"]), "never": cases.Question("never", {"asks": "x"})}
        log = [{"kind": "read", "text": "be  QUICK, 7 ms"}]
        tally = grade.Tally()
        said = {"goal": {"answer": "be quick", "status": "stated"}, "number": {"answer": "8", "status": "stated"}, "never": {"status": "not known"}}
        grade.case(tally, "x", questions, "Be quick. 7 ms", log, said)
        self.assertEqual(tally.data(), {"extraction": {"right": 2, "of": 3}, "transport": {"right": 2, "of": 2},
                                        "use": {"right": 1, "of": 2}, "abstention": {"right": 1, "of": 1}})

    def test_an_answer_may_have_words_around_it(self):
        self.assertEqual(grade.answers('Here:\n```json\n{"goal": 1}\n```'), {"goal": 1})
        self.assertEqual(grade.answers("[1]"), {})

    def test_padded_has_exactly_the_size_and_both_ends(self):
        text = scenes.padded("# Ä\n", 4096)
        self.assertEqual(len(text.encode()), 4096)
        self.assertTrue(text.startswith("# Ä") and text.endswith("The last line of all is whole.\n"))


class Defects(unittest.TestCase):
    def test_each_defect_changes_the_document(self):
        base = next(case for case in cases.every() if case.name == "rust-retry").text("document.md")
        about = {"predecessor": "other", "changed": ["src/lib.rs"], "key": "k" * 20}
        for name, spoil, checks, _ in defects.DEFECTS:
            self.assertNotEqual(spoil(base, about), base, name)
            self.assertTrue(checks, name)


class Leaks(unittest.TestCase):
    def test_a_credential_is_found_where_it_may_not_be_and_only_there(self):
        with tempfile.TemporaryDirectory() as folder:
            home, secret = pathlib.Path(folder) / "home", canary.make("github", "l")[1]
            stage = type("Stage", (), {"home": home, "log": pathlib.Path(folder) / "log"})
            places = {"view/handoffs/1.json": True, "spool/journal.jsonl": True, "data/personas/a/handoffs/d.facts.md": True,
                      "data/personas/a/handoffs/d.facts.json": True, "data/personas/a/texts/t.md": True,
                      "data/personas/a/handoffs/d.md": False, "state/tasuki.redb": False}
            for place in places:
                (home / place).parent.mkdir(parents=True, exist_ok=True)
                (home / place).write_text("x %s y" % secret, encoding="utf-8")
            found = play.leaks(stage, {"case": secret}, ["nothing", "pane " + secret])
            self.assertEqual(found, sorted(
                ["case: the successor's pane"] + ["case: " + place for place, counts in places.items() if counts]))


class NewCase(unittest.TestCase):
    def test_credentials_are_taken_out(self):
        for kind in canary.KINDS:
            text, secret = canary.make(kind, "new")
            self.assertNotIn(secret, new_case.redacted("before %s after\n" % text), kind)
        self.assertEqual(new_case.redacted("plain words, `src/lib.rs`, 1a2b3c4\n"), "plain words, `src/lib.rs`, 1a2b3c4\n")

    def test_a_handoff_becomes_a_case_that_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder) / "home"
            (home / "view/handoffs").mkdir(parents=True)
            (home / "x.md").write_text("# H\n%s\n" % canary.make("github", "s")[0], encoding="utf-8")
            view = {"handoff_id": "12345678-aaaa", "persona_slug": "dev", "sha256": "x", "file_path": str(home / "x.md"),
                    "facts": {"user": {"first": "Do it.", "last": ["Do it.", "Then that."]}}}
            (home / "view/handoffs/12345678-aaaa.json").write_text(json.dumps(view), encoding="utf-8")
            out = table.Out(io.StringIO(), io.StringIO())
            self.assertEqual(new_case.make("1234", home, pathlib.Path(folder), out), 0)
            case = cases.Case(pathlib.Path(folder) / "case-12345678")
            self.assertEqual(case.conversation(), [{"user": "Do it."}, {"user": "Then that."}])
            self.assertIn("[REDACTED:", case.text("document.md"))


class Transcripts(unittest.TestCase):
    def written(self, *lines):
        file = tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False)
        self.addCleanup(pathlib.Path(file.name).unlink)
        with file:
            file.write("".join(json.dumps(line) + "\n" for line in lines) + "no json\n")
        return file.name

    def test_tokens_of_each_form(self):
        used = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7}
        message = {"id": "m", "role": "assistant", "model": "claude-x", "usage": used, "content": [{"type": "text", "text": "hi"}]}
        claude = self.written({"message": message}, {"message": message})
        self.assertEqual(usage.tokens(claude), {"input": 5, "output": 2, "cached": 100, "written": 7})
        self.assertEqual((usage.model(claude), list(usage.texts(claude))), ("claude-x", ["hi", "hi"]))
        told = lambda count: {"payload": {"type": "token_count", "info": {"total_token_usage": {
            "input_tokens": count, "cached_input_tokens": 10, "output_tokens": 3}}}}
        self.assertEqual(usage.tokens(self.written(told(20), told(50))), {"input": 40, "cached": 10, "output": 3})
        pi = self.written({"id": "1", "message": {"role": "assistant", "usage": {"input": 4, "output": 1, "cacheRead": 9, "cacheWrite": 2}}})
        self.assertEqual(usage.tokens(pi), {"input": 4, "output": 1, "cached": 9, "written": 2})
        self.assertEqual(usage.tokens("/nowhere"), {"input": 0, "output": 0, "cached": 0, "written": 0})


class Compared(unittest.TestCase):
    def test_two_results_and_two_folders_of_prompts(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = pathlib.Path(folder) / "one", pathlib.Path(folder) / "two"
            for at, right in ((one, 3), (two, 4)):
                at.mkdir()
                (at / "r.json").write_text(json.dumps({"mode": "offline", "counts": {"use": {"right": right, "of": 4}}}), encoding="utf-8")
            said = io.StringIO()
            self.assertEqual(compare.compare(one, two, table.Out(said, io.StringIO())), 0)
            self.assertIn("3 of 4 → 4 of 4", said.getvalue())
            for at, text in ((one, "Write.\n"), (two, "Write it.\n")):
                (at / "r.json").unlink()
                (at / "instruction.md").write_text(text, encoding="utf-8")
            self.assertEqual(compare.compare(one, two, table.Out(said, io.StringIO())), 0)
            self.assertTrue(re.search(r"^ +\+Write it\.$", said.getvalue(), re.M), said.getvalue())


if __name__ == "__main__":
    unittest.main()
