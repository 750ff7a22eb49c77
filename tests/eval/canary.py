"""Credentials that nobody has: made when they are needed, so that no file of this repository holds one."""
import random
import string

LETTERS = string.ascii_letters + string.digits


def letters(seed, length, alphabet=LETTERS):
    chance = random.Random(seed)
    return "".join(chance.choice(alphabet) for _ in range(length))


def make(kind, seed):
    """A credential of a kind, in a text as it would be written. Gives the text and the part that must not be seen."""
    if kind == "github":
        secret = "ghp_" + letters(seed, 36)
        return secret, secret
    if kind == "aws":
        secret = letters(seed, 40)
        return "AWS_SECRET_ACCESS_KEY=" + secret, secret
    if kind == "url":
        secret = letters(seed, 18)
        return "postgres://app:%s@db.internal/app" % secret, secret
    if kind == "bearer":
        secret = letters(seed, 44)
        return "Authorization: Bearer " + secret, secret
    if kind == "slack":
        secret = "xoxb-%s-%s-%s" % (letters(seed, 12, string.digits), letters(seed + "b", 12, string.digits), letters(seed, 24))
        return secret, secret
    if kind == "assigned":
        secret = letters(seed, 32)
        return "api_key = \"%s\"" % secret, secret
    raise ValueError("there is no credential of the kind %s" % kind)


KINDS = ("github", "aws", "url", "bearer", "slack", "assigned")
