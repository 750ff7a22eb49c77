class Queue:
    def __init__(self):
        self.waiting = []

    def put(self, job):
        self.waiting.append(job)
