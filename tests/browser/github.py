"""As much of GitHub as gh needs to comment and to look: a server on a Unix socket, for one repository with one issue."""

import http.server
import json
import shutil
import socketserver
import threading
import urllib.parse

TOKEN = "token fake"
ISSUE_URL = "https://github.localhost/o/r/issues/42"
NONE = {"nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": ""}, "totalCount": 0}


class GitHub:
    """The server. It ends with the process."""

    def __init__(self, folder):
        self.socket, self.config = folder / "github", folder / "gh"
        self.comments = []
        # So many comments are stored without an answer, each followed by a look that fails.
        self.loses_answers = 0
        self.fails_looks = 0
        self.config.mkdir()
        (self.config / "config.yml").write_text(f"http_unix_socket: {self.socket}\n")
        server = Server(str(self.socket), Handler)
        server.github = self
        threading.Thread(target=server.serve_forever, daemon=True).start()

    @staticmethod
    def can():
        return shutil.which("gh") is not None

    def surroundings(self):
        """What gh finds around it: this server, and a login."""
        return {"GH_CONFIG_DIR": str(self.config), "GH_TOKEN": "fake", "GH_HOST": "github.localhost"}

    def graphql(self, query, variables):
        """An answer, or none if it is lost."""
        if "mutation CommentCreate" in query:
            self.comments.append(variables["input"]["body"])
            if self.loses_answers:
                self.loses_answers -= 1
                self.fails_looks += 1
                return None
            return {"data": {"addComment": {"commentEdge": {"node": {"url": self.url(len(self.comments))}}}}}
        if "CommentsForIssue" in query:
            if self.fails_looks:
                self.fails_looks -= 1
                return {"message": "No"}
            nodes = [
                {"id": f"C{at}", "author": {"login": "kai"}, "body": body, "url": self.url(at + 1)}
                for at, body in enumerate(self.comments)
            ]
            return {"data": {"node": {"comments": NONE | {"nodes": nodes}}}}
        if variables.get("number") != 42:
            wrong = {"type": "NOT_FOUND", "path": ["repository", "issue"], "message": "Could not resolve to an issue."}
            return {"data": {"repository": {"hasIssuesEnabled": True, "issue": None}}, "errors": [wrong]}
        issue = {"__typename": "Issue", "id": "I_1", "number": 42, "state": "OPEN", "url": ISSUE_URL, "comments": NONE}
        return {"data": {"repository": {"hasIssuesEnabled": True, "issue": issue}}}

    @staticmethod
    def url(number):
        return f"{ISSUE_URL}#issuecomment-{number}"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "gh"

    def log_message(self, *_):
        pass

    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        known = {"/repos/o/r": {"private": True}, "/user": {"login": "kai"}}
        self.say(200 if path in known else 404, known.get(path, {"message": "Not Found"}))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != TOKEN:
            return self.say(401, {"message": "Requires authentication"})
        answer = self.server.github.graphql(asked.get("query", ""), asked.get("variables") or {})
        if answer is None:
            # The connection stays open until gh is given up.
            threading.Event().wait(60)
        elif "message" in answer:
            self.say(502, answer)
        else:
            self.say(200, answer)
