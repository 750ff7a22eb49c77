class Queue:
    def __init__(self):
        self.waiting = []
        self.known = set()

    def put(self, job):
        if job["key"] in self.known:
            return False
        self.known.add(job["key"])
        self.waiting.append(job)
        return True
