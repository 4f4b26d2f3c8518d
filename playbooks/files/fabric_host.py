#!/usr/bin/env python3
# managed by fabric: carries out one bundle on this host, and takes it back unless it is confirmed
"""Runs on a host (Python 3.6 or later, standard library only).

A bundle is JSON: {"version": 1, "run", "timer_s", "mode", "steps", "confirm", "undo", "program"}.
A step is {"put": {"path", "text", "mode", "owner", "was"}} (text null removes the file; `was`: SHA-256
of the text that it replaces, for files shared with others) or {"call": {"argv", "status", "timeout_s",
"unless", "late"}} (late: in an undo, after the files). Modes: check, apply, confirm, undo, recover.

apply: take the lock, compare, keep the files as they were, arm a dead-man, write, call. A step that
fails takes everything back at once; without `confirm` in `timer_s` seconds the dead-man does. A
reboot in between restores the files before anything reads them, and live values soon after.
Nothing is written when all is as it should be. A file at one of our paths without the mark is
somebody else's: the bundle is refused.

install: a bundle of `compile --bundle`, which nobody confirms: as apply and confirm in one, or with --root
or --offline its files alone, which count from the next boot on. A step that fails takes everything back.
"""

# Hosts have pythons as old as 3.6, so newer idioms stay out.
# ruff: noqa: D102, D103, PTH103, PTH104, PTH108, PTH110, PTH112, PTH113, PTH114, PTH116, PTH117, PTH118, PTH120, PTH123, PTH211, RUF005, UP031

import argparse
import base64
import errno
import fcntl
import grp
import hashlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time

MARK = "managed by fabric"
HERE = "/usr/local/sbin/fabric-host"
CHECK = "/usr/local/sbin/fabric-check"
STATE = "/var/lib/fabric"
LOCK = "/run/fabric.lock"
BOOT_UNIT = "/etc/systemd/system/fabric-recover.service"
BOOT_LINK = "/etc/systemd/system/sysinit.target.wants/fabric-recover.service"
QOS = "/usr/local/sbin/fabric-qos"
QOS_FILES = "/etc/fabric/qos"
OUTPUT_LIMIT = 2000
GRACE_S = 2
GIVEN_UP = "given up before it began"
AFTER_BOOT_S = 30
AGAIN_S = (60, 300, 1800)
UNITS = "/etc/systemd/system/"
NEEDED_TO_UNDO = ("/usr/local/", UNITS)

BOOT_UNIT_TEXT = """# managed by fabric: after a reboot amid a change, files come back as before it
[Unit]
Description=Take back an unconfirmed change of fabric
DefaultDependencies=no
ConditionPathExists=/var/lib/fabric/pending.json
RequiresMountsFor=/var/lib/fabric /usr/local/sbin
After=local-fs.target
Before=sysinit.target systemd-sysctl.service systemd-modules-load.service network-pre.target

[Service]
Type=oneshot
ExecStart=%s recover --boot
"""

# What must read its files anew after they were restored: first path that fits -> program.
SETTLE = (
    (UNITS, ["systemctl", "daemon-reload"]),
    ("/etc/netplan/", ["netplan", "generate"]),
)


class Refused(Exception):
    """Nothing was touched; the text says why."""


class Failed(Exception):
    """A step did not end as it must."""

    def __init__(self, label, status, stdout, stderr):
        super().__init__(label)
        self.facts = {
            "step": label,
            "status": status,
            "stdout": stdout[-OUTPUT_LIMIT:],
            "stderr": stderr[-OUTPUT_LIMIT:],
        }


# ------------------------------------------------------------------ files


class Files:
    """Files below a root folder ("/" in earnest, another one in tests)."""

    def __init__(self, root):
        self.root = root

    def at(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path):
        """Bytes, or None when there is no such file."""
        try:
            with open(self.at(path), "rb") as file:
                return file.read()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    def image(self, path):
        """What `restore` needs to bring the file back."""
        data = self.read(path)
        if data is None:
            return {"path": path, "data": None}
        stat = os.stat(self.at(path))
        return {
            "path": path,
            "data": base64.b64encode(data).decode("ascii"),
            "mode": stat.st_mode & 0o7777,
            "uid": stat.st_uid,
            "gid": stat.st_gid,
        }

    def restore(self, image):
        if image["data"] is None:
            self.remove(image["path"])
            return
        data = base64.b64decode(image["data"].encode("ascii"))
        self.replace(
            self.aside(image["path"], data, image["mode"], image["uid"], image["gid"]), image["path"]
        )

    def aside(self, path, data, mode, uid, gid):
        """The file's new content beside it, complete and on disk; gives its path."""
        folder = os.path.dirname(self.at(path))
        os.makedirs(folder, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".fabric-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                if (uid, gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), uid, gid)
                os.fsync(file.fileno())
        except OSError:
            os.unlink(name)
            raise
        return name

    def replace(self, aside, path):
        os.rename(aside, self.at(path))
        self.sync(os.path.dirname(self.at(path)))

    def remove(self, path):
        try:
            os.unlink(self.at(path))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
        else:
            self.sync(os.path.dirname(self.at(path)))

    def write(self, path, data, mode=0o644):
        self.replace(self.aside(path, data, mode, os.geteuid(), os.getegid()), path)

    @staticmethod
    def sync(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def odd(self, path):
        """What stands at the path where a file should; "" for a file or nothing.

        A link is never ours: renaming over it would lose it, and no way back would know where it led.
        """
        at = self.at(path)
        if os.path.islink(at):
            return "a link"
        return "no plain file" if os.path.exists(at) and not os.path.isfile(at) else ""

    def foreign(self, path):
        """Why what is at the path is somebody else's (no mark in its first lines); "" for ours or nothing."""
        odd = self.odd(path)
        data = None if odd else self.read(path)
        if data is None or any(MARK.encode() in line for line in data.split(b"\n")[:2]):
            return odd and "it is " + odd
        return "no %r in its first lines" % MARK


def ids(owner):
    """(uid, gid) of "user" or "user:group"; our own where the host does not know the name."""
    user, _, group = owner.partition(":")
    try:
        entry = pwd.getpwnam(user)
        return entry.pw_uid, grp.getgrnam(group).gr_gid if group else entry.pw_gid
    except KeyError:
        return os.geteuid(), os.getegid()


# ------------------------------------------------------------------ programs


def run(argv, timeout, root):
    """(status, stdout, stderr); 127 when there is no such program, 124 when it took too long."""
    environment = dict(os.environ, LC_ALL="C", FABRIC_ROOT=root.rstrip("/"))
    environment["PATH"] = environment.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    command = list(argv)
    if root != "/" and os.path.isabs(command[0]) and os.path.exists(os.path.join(root, command[0][1:])):
        command[0] = os.path.join(root, command[0][1:])
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return 127, "", "%s: %s" % (argv[0], error.strerror)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        return 124, "", "no answer within %s seconds" % timeout
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def end(process):
    """Kill a program that hangs, without waiting for one that cannot die: a driver may hold it."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.stdout.close()
        process.stderr.close()


def words(text):
    """As sysctls compare: one blank between words, hexadecimal by its value."""
    found = [str(int(one, 16)) if re.match("0[xX][0-9a-fA-F]+$", one) else one for one in text.split()]
    return " ".join(found)


# ------------------------------------------------------------------ one bundle


class Host:
    """This host and what is pending on it."""

    def __init__(self, root):
        self.root = root
        self.files = Files(root)
        self.alone = False

    # -- state

    def kept(self, name):
        """One of our own records; None where there is none."""
        path = STATE + "/" + name
        data = self.files.read(path)
        try:
            return json.loads(data.decode("utf-8")) if data else None
        except ValueError:
            why = "%s cannot be understood: see what it says, then move it away" % path
            raise Refused(why) from None

    @property
    def pending(self):
        return self.kept("pending.json")

    def save(self, pending):
        self.folder()
        self.files.write(STATE + "/pending.json", json.dumps(pending).encode("utf-8"), 0o600)

    def keep(self, pending):
        """As `save`, amid a change."""
        try:
            self.save(pending)
        except OSError as error:
            raise Failed("keep the way back", 1, "", str(error)) from error

    def folder(self):
        path = self.files.at(STATE)
        if not os.path.isdir(path):
            os.makedirs(path, 0o700)

    def outcome(self, run_name, what):
        self.folder()
        text = json.dumps({"run": run_name, "outcome": what, "at": int(time.time())})
        self.files.write(STATE + "/last.json", text.encode("utf-8"), 0o600)

    def last(self, run_name):
        """How an earlier change of this run ended; "" when it is not the last one."""
        found = self.kept("last.json") or {}
        return found.get("outcome", "") if found.get("run") == run_name else ""

    # -- lock

    def take_lock(self, run_name):
        owner = self.owner()
        if owner and owner != run_name:
            raise Refused("%s is held by run %s" % (LOCK, owner))
        pending = self.pending
        if pending and pending["run"] != run_name:
            raise Refused("run %s has an unconfirmed change here" % pending["run"])
        text = "%s\n# %s: the run that changes this host\n" % (run_name, MARK)
        self.files.write(LOCK, text.encode("utf-8"))

    def owner(self):
        data = self.files.read(LOCK)
        return data.decode("utf-8", "replace").split("\n")[0].strip() if data else ""

    def drop_lock(self, run_name):
        if self.owner() == run_name:
            self.files.remove(LOCK)

    # -- comparing

    def differs(self, step):
        """True when a file is not as the step says."""
        path, text = step["path"], step["text"]
        data = self.files.read(path)
        if text is None or data is None:
            return (text is None) != (data is None)
        stat = os.stat(self.files.at(path))
        return (
            data != text.encode("utf-8")
            or stat.st_mode & 0o7777 != step["mode"]
            or (os.geteuid() == 0 and stat.st_uid != ids(step["owner"])[0])
        )

    def true_already(self, call):
        """None when nobody can say, else whether the call is needed no more."""
        argv = call["argv"]
        if argv[:2] == ["sysctl", "-w"] and len(argv) == 3 and not call["unless"]:
            key, _, value = argv[2].partition("=")
            return self.sysctl(key) == words(value)
        if not call["unless"]:
            return None
        return run(call["unless"], call["timeout_s"], self.root)[0] == 0

    def sysctl(self, key):
        status, out, _ = run(["sysctl", "-n", key], 10, self.root)
        return words(out) if status == 0 else None

    def needed(self, steps):
        """Those steps that would change something. A call without a test goes with the files before it."""
        found = []
        written = False
        for step in steps:
            if "put" in step:
                take = self.differs(step["put"])
                written = written or take
            else:
                true = self.true_already(step["call"])
                take = written if true is None else not true
            if take:
                found.append(step)
        return found

    def refuse_foreign(self, bundle):
        if not bundle["program"]:
            raise Refused("the bundle brings no program for its dead-man")
        if self.files.foreign(HERE):
            raise Refused("%s is not ours (%s)" % (HERE, self.files.foreign(HERE)))
        paths = set()
        for step in bundle["steps"]:
            if "put" not in step:
                continue
            path, text = step["put"]["path"], step["put"]["text"]
            if path in paths:
                raise Refused("the bundle writes %s twice" % path)
            paths.add(path)
            if "was" in step["put"]:
                self.refuse_changed(step["put"])
                continue
            foreign = self.files.foreign(path)
            if foreign:
                raise Refused("%s is not ours (%s)" % (path, foreign))
            if text is not None and not any(MARK in line for line in text.split("\n")[:2]):
                raise Refused("the bundle's %s lacks the mark %r" % (path, MARK))

    def refuse_changed(self, put):
        """A file that we share with others is written over the very text that it was made from."""
        if self.files.odd(put["path"]):
            raise Refused("%s is %s: write to where it leads" % (put["path"], self.files.odd(put["path"])))
        data = self.files.read(put["path"]) or b""
        now = hashlib.sha256(data.decode("utf-8", "replace").strip().encode("utf-8")).hexdigest()
        if now != put["was"] and self.differs(put):
            raise Refused("%s has changed since it was read" % put["path"])

    # -- doing

    def carry_out(self, steps, done, undo):
        """Every file is written aside first, so that a full disk is found before anything changes."""
        asides = {}
        try:
            for step in steps:
                if "put" in step and step["put"]["text"] is not None:
                    put = step["put"]
                    uid, gid = ids(put["owner"])
                    asides[put["path"]] = self.files.aside(
                        put["path"], put["text"].encode("utf-8"), put["mode"], uid, gid
                    )
            for step in steps:
                if "put" in step:
                    path = step["put"]["path"]
                    if path in asides:
                        self.files.replace(asides.pop(path), path)
                    else:
                        self.files.remove(path)
                    done.append("put " + path)
                elif self.call(step["call"], undo):
                    done.append("call " + " ".join(step["call"]["argv"]))
        except OSError as error:
            raise Failed(done[-1] if done else "write files", 1, "", str(error)) from error
        finally:
            for aside in asides.values():
                os.unlink(aside)

    def call(self, call, undo=None):
        """Run it unless it is true already; what takes it back on this host is added to `undo`."""
        if self.true_already(call):
            return False
        argv = call["argv"]
        back = self.inverse(argv)
        status, out, err = run(argv, call["timeout_s"], self.root)
        if status not in call["status"]:
            raise Failed(" ".join(argv), status, out, err)
        if back and undo is not None:
            undo.insert(0, back)
        self.took(argv)
        return True

    def took(self, argv):
        """What the kernel shows counts, not what sysctl(8) ends with: a kernel may bend a value."""
        if argv[:2] == ["sysctl", "-w"] and len(argv) == 3:
            key, _, value = argv[2].partition("=")
            shown = self.sysctl(key)
            if shown not in (None, words(value)):
                raise Failed(" ".join(argv), 0, "", "the kernel did not take it: it shows %s" % shown)

    def inverse(self, argv):
        """The step back that only this host knows: a sysctl's value before, a unit that was not enabled."""
        if argv[:2] == ["sysctl", "-w"] and len(argv) == 3:
            key = argv[2].partition("=")[0]
            before = self.sysctl(key)
            return as_call(["sysctl", "-w", "%s=%s" % (key, before)]) if before is not None else None
        if argv[:2] == ["systemctl", "enable"]:
            # systemd reads its units anew once, when all of them are as they were.
            return as_call(["systemctl", "disable", "--no-reload"] + argv[2:])
        return self.inverse_alone(argv) if self.alone else None

    def inverse_alone(self, argv):
        """What a controller would have read before: a port's MTU; its settings are those of its old file."""
        if argv[:4] == ["ip", "link", "set", "dev"] and argv[5:6] == ["mtu"]:
            data = self.files.read("/sys/class/net/%s/mtu" % argv[4])
            return as_call(argv[:6] + [data.decode("ascii").strip()]) if data else None
        if argv[0] == QOS and self.files.read("%s/%s.conf" % (QOS_FILES, argv[1])) is not None:
            return {"call": dict(as_call(argv)["call"], timeout_s=120, late=True)}
        return None

    # -- modes

    def check(self, bundle):
        self.refuse_foreign(bundle)
        would = [label(step) for step in self.needed(bundle["steps"])]
        return {"changed": bool(would), "would": would}

    def apply(self, bundle):
        name = bundle["run"]
        pending = self.pending
        if pending and pending["run"] == name:
            if pending["phase"] == "committed":
                return {"changed": False, "pending": True}
            back = self.take_back(pending, "unfinished")
            if back["pending"]:  # a new record would forget how things were
                return dict(back, failed=unfinished(name), changed=False)
        if self.last(name) == GIVEN_UP:
            raise Refused("run %s was given up here before it began" % name)
        self.refuse_foreign(bundle)
        self.take_lock(name)
        steps = self.needed(bundle["steps"])
        if not steps:
            self.drop_lock(name)
            return {"changed": False, "pending": False}
        return self.begin(bundle, steps)

    def begin(self, bundle, steps):
        name = bundle["run"]
        pending = {
            "version": 1,
            "run": name,
            "phase": "writing",
            "images": [self.files.image(step["put"]["path"]) for step in steps if "put" in step],
            "undo": [],
            "deadman": None,
        }
        try:
            self.save(pending)
        except OSError as error:  # no room for the way back: nothing was touched
            self.drop_lock(name)
            return {"changed": False, "failed": as_facts("keep the way back", error), "pending": False}
        done = []
        found = []
        try:
            self.get_ready(bundle, pending)
            # What is found on the way is kept before the next step, so that a kill loses none of it.
            self.carry_out([step for step in steps if "put" in step], done, found)
            for step in steps:
                if "call" in step:
                    pending["undo"] = found + bundle["undo"]
                    self.keep(pending)
                    self.carry_out([step], done, found)
            pending["undo"] = found + bundle["undo"]
            self.keep(dict(pending, phase="committed"))
        except Failed as failed:
            if pending["undo"]:
                pending["undo"] = found + bundle["undo"]
            back = self.take_back(pending, "a step failed")
            return {"changed": not back["undone"], "done": done, "failed": failed.facts, **back}
        return {"changed": True, "done": done, "pending": True, "deadman": pending["deadman"]["by"]}

    def get_ready(self, bundle, pending):
        """The dead-man, before anything is written."""
        try:
            self.prepare(bundle["program"])
            pending["deadman"] = self.arm(bundle["run"], bundle["timer_s"])
        except OSError as error:
            raise Failed("arm the dead-man", 1, "", str(error)) from error
        self.keep(pending)

    # -- without a controller

    def install(self, bundle, offline, dry):
        """As apply and confirm in one; files only for a system that does not run, or not to disturb it."""
        self.alone = True
        self.refuse_foreign(bundle)
        if offline:
            return self.install_files(bundle, dry)
        if dry:
            return self.check(bundle)
        pending = self.pending
        if pending and (pending["run"], pending["phase"]) == (bundle["run"], "committed"):
            # An earlier bundle, carried out as a whole and killed before it said so.
            self.forget(pending, "confirmed")
        found = self.apply(bundle)
        if found.get("failed"):
            return found
        if found.get("pending"):
            found = dict(self.confirm(bundle), changed=found["changed"], done=found.get("done", []))
        return dict(found, changed=self.put_program(bundle["program"]) or found["changed"])

    def install_files(self, bundle, dry):
        self.refuse_busy()
        puts = [step for step in bundle["steps"] if "put" in step and self.differs(step["put"])]
        links = [pair for pair in map(unit_link, bundle["steps"]) if pair and not self.linked(pair[0])]
        self.refuse_outside([step["put"]["path"] for step in puts] + [link for link, _ in links] + [HERE])
        program = self.files.read(HERE) != bundle["program"].encode("utf-8")
        would = [label(step) for step in puts] + ["link " + link for link, _ in links]
        would += ["put " + HERE] if program else []
        if dry:
            return {"changed": bool(would), "would": would}
        images = [self.files.image(step["put"]["path"]) for step in puts]
        try:
            self.carry_out(puts, [], None)
            for link, target in links:
                self.link(link, target)
            self.put_program(bundle["program"])
        except (Failed, OSError) as error:
            facts = error.facts if isinstance(error, Failed) else as_facts("write files", error)
            return self.files_back(images, links, facts)
        return {"changed": bool(would), "done": would}

    def files_back(self, images, links, facts):
        for link, _ in links:
            if self.linked(link):
                self.files.remove(link)
        problems = self.restore_files(images)
        found = {"changed": bool(problems), "failed": facts, "undone": not problems}
        return dict(found, undo_problems=problems) if problems else found

    def refuse_busy(self):
        """Files of a host on which a change waits for its confirmation would be taken back with it."""
        pending = self.pending
        if pending:
            raise Refused("run %s has an unconfirmed change here" % pending["run"])

    def refuse_outside(self, paths):
        """A folder of an image may be a link to an absolute path: one of the machine that builds it."""
        top = os.path.realpath(self.root).rstrip("/") + "/"
        for path in paths:
            if not (os.path.realpath(os.path.dirname(self.files.at(path))) + "/").startswith(top):
                raise Refused("%s is not in %s: a link leads out of it" % (path, self.root))

    def link(self, path, target):
        os.makedirs(os.path.dirname(self.files.at(path)), exist_ok=True)
        os.symlink(target, self.files.at(path))

    def linked(self, path):
        return os.path.islink(self.files.at(path))

    def put_program(self, program):
        """This program itself; True when the host had another one, or none."""
        if self.files.read(HERE) == program.encode("utf-8"):
            return False
        self.files.write(HERE, program.encode("utf-8"), 0o755)
        return True

    def confirm(self, bundle):
        pending = self.pending
        if not pending or pending["run"] != bundle["run"]:
            ended = self.last(bundle["run"])
            if ended not in ("", "confirmed"):
                raise Refused("nothing to confirm: %s, and the host has its settings from before" % ended)
            return {"changed": False, "pending": False}
        done = []
        try:
            for step in bundle["confirm"]:
                self.carry_out([step], done, [])
        except Failed as failed:
            return {"changed": False, "done": done, "failed": failed.facts, "pending": True}
        self.forget(pending, "confirmed")
        return {"changed": False, "done": done, "pending": False}

    def undo(self, bundle, why="undone by its run"):
        pending = self.pending
        if not pending or pending["run"] != bundle["run"]:
            self.drop_lock(bundle["run"])
            return {"changed": False, "pending": False, "undone": False}
        back = self.take_back(pending, why)
        return dict(back, changed=True)

    def recover(self, run_name, boot):
        """Take back what is pending: of one run, or of any at boot."""
        pending = self.pending
        if not pending or (run_name and pending["run"] != run_name):
            if run_name and not self.last(run_name):
                # Its bundle may still be on the way from a controller that died.
                self.outcome(run_name, GIVEN_UP)
            return {"changed": False, "pending": False, "undone": False}
        if boot:
            return self.recover_at_boot(pending)
        back = self.take_back(pending, "no confirmation came")
        if back["pending"]:
            self.try_again(pending)
        return dict(back, changed=True)

    def try_again(self, pending):
        """A program that hung or failed may come back; after the last try a run or somebody must look."""
        tries = pending.get("tries", 0)
        if tries < len(AGAIN_S):
            pending["tries"] = tries + 1
            pending["deadman"] = self.arm(pending["run"], AGAIN_S[tries], again=tries + 1)
            self.save(pending)

    def recover_at_boot(self, pending):
        """Settings files first, before anything reads them; the rest once the devices are there.

        Programs and units stay until then: what takes live values back needs them.
        """
        later = [image for image in pending["images"] if image["path"].startswith(NEEDED_TO_UNDO)]
        problems = self.restore([image for image in pending["images"] if image not in later])
        if not problems:
            pending["images"] = later
            pending["phase"] = "files restored"
        pending["deadman"] = self.arm(pending["run"], AFTER_BOOT_S, booting=True)
        self.save(pending)
        return {"changed": True, "pending": True, "undone": False, "undo_problems": problems}

    # -- taking back

    def call_back(self, steps):
        """Every step of an undo, also when one of them fails; gives what failed."""
        problems = []
        for step in steps:
            try:
                self.call(step["call"])
            except Failed as failed:
                problems.append(failed.facts)
        return problems

    def take_back(self, pending, why):
        late = [step for step in pending["undo"] if step["call"].get("late")]
        problems = self.call_back([step for step in pending["undo"] if step not in late])
        # The next try needs the programs that take live values back.
        kept = NEEDED_TO_UNDO if problems else ()
        problems += self.restore([one for one in pending["images"] if not one["path"].startswith(kept)])
        if any(step["call"]["argv"][:2] == ["systemctl", "disable"] for step in pending["undo"]):
            self.settle([UNITS])
        problems += self.call_back(late)
        try:
            if not problems:
                self.forget(pending, why)
                return {"undone": True, "pending": False}
            # Kept for the next try; the dead-man has done what it could.
            pending["phase"] = "undo failed"
            self.save(pending)
        except OSError as error:
            problems.append(as_facts("keep how it ended", error))
        return {"undone": False, "pending": True, "undo_problems": problems}

    def restore(self, images):
        """Files as they were, and read anew; gives what went wrong."""
        problems = self.restore_files(images)
        self.settle(image["path"] for image in images)
        return problems

    def restore_files(self, images):
        problems = []
        for image in reversed(images):
            try:
                self.files.restore(image)
            except OSError as error:
                problems.append(as_facts("restore " + image["path"], error))
        return problems

    def settle(self, paths):
        paths = list(paths)
        for prefix, argv in SETTLE:
            booted = argv[0] != "systemctl" or os.path.isdir(self.files.at("/run/systemd/system"))
            if booted and any(path.startswith(prefix) for path in paths):
                run(argv, 60, self.root)

    def forget(self, pending, why):
        self.disarm(pending.get("deadman"))
        self.outcome(pending["run"], why)
        self.files.remove(STATE + "/pending.json")
        for path in (BOOT_LINK, BOOT_UNIT):
            self.files.remove(path)
        self.drop_lock(pending["run"])

    # -- dead-man

    def prepare(self, program):
        """This program itself, for the dead-man and for the next boot."""
        self.put_program(program)
        self.files.write(BOOT_UNIT, (BOOT_UNIT_TEXT % HERE).encode("utf-8"))
        link = self.files.at(BOOT_LINK)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.islink(link):
            os.symlink(BOOT_UNIT, link)

    def arm(self, name, seconds, booting=False, again=0):
        """Something that outlives us and calls `recover` when no confirmation came.

        A timer starts after sysinit.target, which waits for us at boot: its start is then only asked for.
        """
        if seconds <= 0:
            return {"by": "none"}
        command = [sys.executable or "/usr/bin/python3", self.files.at(HERE), "recover", "--run", name]
        command += ["--root", self.root] if self.root != "/" else []
        unit = "fabric-undo-" + name + ("-%d" % again if again else "")
        if os.path.isdir(self.files.at("/run/systemd/system")):
            argv = ["systemd-run", "--unit=" + unit, "--on-active=%ds" % seconds]
            argv += ["--no-block"] if booting else []
            status, _, _ = run(argv + ["--timer-property=AccuracySec=1s"] + command, 30, self.root)
            if status == 0:
                return {"by": "systemd", "unit": unit}
        return {"by": "child", "pid": detached(seconds, command), "name": name}

    def disarm(self, deadman):
        if not deadman:
            return
        if deadman["by"] == "systemd":
            run(["systemctl", "stop", deadman["unit"] + ".timer"], 30, self.root)
        elif deadman["by"] == "child" and deadman["pid"] not in (os.getpid(), os.getppid()):
            stop_child(deadman["pid"], deadman["name"])


def as_facts(step, error):
    return {"step": step, "status": 1, "stdout": "", "stderr": str(error)}


def unfinished(name):
    return as_facts("take back what run %s began" % name, "not all of it could be: see undo_problems")


def as_call(argv):
    return {"call": {"argv": argv, "status": [0], "timeout_s": 60, "unless": []}}


def unit_link(step):
    """(link, target) of a step that enables a template unit; its own test names the link."""
    call = step.get("call", {})
    if call.get("argv", [])[:2] != ["systemctl", "enable"] or call["unless"][:2] != ["test", "-L"]:
        return None
    template = re.sub("@[^/]*[.]service$", "@.service", call["argv"][2])
    return call["unless"][2], "/etc/systemd/system/" + template


def label(step):
    return "put " + step["put"]["path"] if "put" in step else "call " + " ".join(step["call"]["argv"])


def detached(seconds, command):
    """A process in a session of its own that sleeps and then becomes `command`; gives its id."""
    script = 'sleep "$1"; shift; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", script, "fabric-undo", str(seconds)] + command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    return process.pid


def stop_child(pid, name):
    """End the sleeper, and only it: a process id may have been given to somebody else since."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            command = file.read().split(b"\0")
        if b"fabric-undo" in command and name.encode() in command:
            os.killpg(pid, signal.SIGTERM)
    except OSError:
        return


# ------------------------------------------------------------------ main


def only_one(root):
    """Hold this while working: the dead-man and a confirmation must not meet."""
    path = os.path.join(root, "run", "fabric.busy")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise Refused("%s: %s; run this as root" % (path, error.strerror)) from None
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def read_bundle(path):
    try:
        with open(path, "rb") as file:
            bundle = json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError) as error:
        raise Refused("%s is no bundle: %s" % (path, error)) from None
    if bundle.get("version") != 1:
        raise Refused("a bundle of version %s is not known here" % bundle.get("version"))
    return bundle


def work(host, options):
    if options.what == "recover":
        return options.run, host.recover(options.run, options.boot)
    if options.what == "install":
        bundle = read_bundle(options.bundle)
        if not os.path.isdir(options.root):  # a typing error, an empty variable: no image grows out of it
            raise Refused("--root %s: there is no such folder" % (options.root or "''"))
        offline = options.offline or options.root != "/"
        try:
            return bundle["run"], host.install(bundle, offline, options.check)
        except OSError as error:
            return bundle["run"], {"failed": as_facts("install", error)}
    bundle = read_bundle(options.what)
    mode = options.mode or bundle["mode"]
    if mode == "recover":
        return bundle["run"], host.undo(bundle, "its run died")
    return bundle["run"], getattr(host, mode)(bundle)


def check(words):
    """Becomes the program that judges this host, which writes nothing."""
    try:
        os.execv(CHECK, [CHECK] + words)
    except OSError as error:
        sys.stdout.write("%s: %s; `fabric apply` brings it\n" % (CHECK, error.strerror))
        return 2


def main(argv=None):
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["check"]:
        return check(words[1:])
    parser = argparse.ArgumentParser(prog="fabric-host")
    parser.add_argument("what", help="path of a bundle, or: recover, install, check (`fabric-check --help`)")
    parser.add_argument("bundle", nargs="?", default="", help="install: path of the bundle")
    parser.add_argument("--mode", default="", choices=["", "check", "apply", "confirm", "undo", "recover"])
    parser.add_argument("--run", default="", help="recover: only this run")
    parser.add_argument("--boot", action="store_true", help="recover: files only, before they are read")
    parser.add_argument(
        "--offline", action="store_true", help="install: files only; they count from the next boot on"
    )
    parser.add_argument(
        "--check", action="store_true", help="install: say what would change, and change nothing"
    )
    parser.add_argument("--root", default="/", help="the system in this folder (install), or tests")
    parser.add_argument("--result", default="", help="also write the result here")
    options = parser.parse_args(argv)
    os.umask(0o022)
    result = {"version": 1, "changed": False, "refused": "", "failed": None, "done": [], "pending": False}
    handle = None
    try:
        # A system that does not run has nobody to meet, and its /run is not ours to fill.
        if options.what != "install" or options.root == "/":
            handle = only_one(options.root)
        result["run"], found = work(Host(options.root), options)
        result.update(found)
    except Refused as refused:
        result["refused"] = str(refused)
    except OSError as error:
        result["failed"] = as_facts(options.what if options.what == "recover" else "begin", error)
    finally:
        if handle is not None:
            os.close(handle)
    text = json.dumps(result, sort_keys=True)
    if options.result:
        Files("/").write(options.result, text.encode("utf-8"), 0o600)
    sys.stdout.write(text + "\n")
    return 1 if result["refused"] or result["failed"] or result.get("undo_problems") else 0


if __name__ == "__main__":
    sys.exit(main())
